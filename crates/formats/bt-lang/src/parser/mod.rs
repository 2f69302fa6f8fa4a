//! The parser: from text to a tree and diagnostics. It never fails.
//!
//! It is a recursive-descent parser with one function for each rule. If a rule does not match, it reports a diagnostic and
//! returns `Failed`; the statement, field or item around it becomes an `Error` node, and parsing continues after it. So each
//! error is reported once, and all errors in one run.
//!
//! Two limits make every input harmless: the depth of the recursion ([`MAX_DEPTH`]), and the height of the tree
//! ([`crate::ast::MAX_HEIGHT`]: `1+1+1+...` is high without deep recursion).

mod casts;
mod cdef;
mod declarator;
mod exprs;
mod forms;
mod items;
mod points;
mod preprocessor;
mod primary;
mod recover;
mod stmts;
mod types;

pub(crate) use stmts::void_stmt;

use crate::ast::{Block, Comment, Expr, Item, MAX_HEIGHT, Name, Program, Span, Stmt, StmtKind};
use crate::diag::{Diagnostic, Sink};
use crate::lexer::{Kind, Lexer, Token};

/// What the parser makes of a script.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree, with `Error` nodes where a part could not be read.
    pub program: Program,
    /// What is wrong, by place.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether nothing is so wrong that the script can't be run.
    pub fn is_ok(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// How to parse.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The script's arguments, which `$1` in an attach point stands for. With `None` such points aren't taken apart.
    pub params: Option<&'a [String]>,
    /// Whether it is about the memory of a process outside of probes: `for` walks lists, too, and `&` takes any address.
    pub of_process: bool,
}

/// Parses a script.
pub fn parse(source: &str) -> Parsed {
    parse_with(source, Options::default())
}

/// Parses a script, given its arguments.
pub fn parse_with(source: &str, options: Options<'_>) -> Parsed {
    if source.len() > MAX_SOURCE {
        let message = format!("the script is too long: {} bytes, and at most {MAX_SOURCE} are read", source.len());
        return Parsed { program: Program::default(), diagnostics: vec![Diagnostic::error(message, Span::empty(0))] };
    }
    let mut parser = Parser::new(source, 0, source.len(), options);
    let program = parser.program();
    Parsed { program, diagnostics: parser.sink.finish() }
}

/// Parses statements that are in no probe, with `;` between them: what can be computed without one. A `for` may walk lists.
/// The diagnostics are by place; the block has `Error` nodes if one of them is an error.
pub fn parse_statements(source: &str) -> (Block, Vec<Diagnostic>) {
    if source.len() > MAX_SOURCE {
        let message = format!("the text is too long: {} bytes, and at most {MAX_SOURCE} are read", source.len());
        let span = Span::empty(0);
        let block = Block { stmts: Vec::new(), value: None, span };
        return (block, vec![Diagnostic::error(message, span)]);
    }
    let options = Options { of_process: true, ..Options::default() };
    let mut parser = Parser::new(source, 0, source.len(), options);
    let block = parser.statements();
    (block, parser.sink.finish())
}

/// Parses one expression, all of the text, or gives what is wrong with it.
pub fn parse_expression(source: &str) -> Result<Expr, Vec<Diagnostic>> {
    let (mut block, diagnostics) = parse_statements(source);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    match (block.stmts.pop(), block.stmts.is_empty()) {
        (Some(Stmt { kind: StmtKind::Expr(expr), .. }), true) => Ok(expr),
        _ => Err(vec![Diagnostic::error("expected one expression", block.span)]),
    }
}

/// How many bytes a script may have.
const MAX_SOURCE: usize = 16 << 20;

/// How deep the parser goes: nested blocks, parentheses, operators before their operand.
pub const MAX_DEPTH: u32 = 100;

/// Something could not be parsed, and its diagnostic has been reported.
#[derive(Debug, Clone, Copy)]
struct Failed;

/// The result of a rule.
type Parse<T> = Result<T, Failed>;

struct Parser<'a> {
    source: &'a str,
    options: Options<'a>,
    lexer: Lexer<'a>,
    /// The token looked at.
    token: Token,
    /// Where the last token taken ends.
    last_end: u32,
    comments: Vec<Comment>,
    sink: Sink,
    depth: u32,
    /// The height of the node that was finished last.
    height: u32,
    /// Definitions that stood between the fields of the item that is being read.
    within_fields: Vec<Item>,
}

/// A place to go back to.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    token: Token,
    last_end: u32,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, start: usize, end: usize, options: Options<'a>) -> Self {
        let mut lexer = Lexer::new(source, start, end);
        let mut comments = Vec::new();
        let token = lexer.next(&mut comments);
        let last_end = start as u32;
        let (sink, within_fields) = (Sink::default(), Vec::new());
        Self { source, options, lexer, token, last_end, comments, sink, depth: 0, height: 0, within_fields }
    }

    /// Takes the token looked at.
    fn advance(&mut self) -> Token {
        let taken = self.token;
        self.last_end = taken.span.end;
        self.token = self.lexer.next(&mut self.comments);
        taken
    }

    fn mark(&self) -> Mark {
        Mark { at: self.lexer.at, token: self.token, last_end: self.last_end }
    }

    fn reset(&mut self, mark: Mark) {
        (self.lexer.at, self.token, self.last_end) = (mark.at, mark.token, mark.last_end);
    }

    /// The token after the one looked at.
    fn peek(&self) -> Token {
        // Comments between the two are found again when the parser gets there.
        self.lexer.clone().next(&mut Vec::new())
    }

    /// Goes on reading at a byte.
    fn jump_to(&mut self, at: usize) {
        self.last_end = at as u32;
        self.lexer.at = at;
        self.token = self.lexer.next(&mut self.comments);
    }

    fn text(&self, span: Span) -> &'a str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The word looked at; empty if it isn't one.
    fn word(&self) -> &'a str {
        if self.token.kind == Kind::Word { self.text(self.token.span) } else { "" }
    }

    fn at(&self, sign: &'static str) -> bool {
        self.token.kind == Kind::Sign(sign)
    }

    fn at_end(&self) -> bool {
        self.token.kind == Kind::Eof
    }

    /// Takes the sign if it is there.
    fn take(&mut self, sign: &'static str) -> bool {
        let there = self.at(sign);
        if there {
            self.advance();
        }
        there
    }

    /// Takes the word if it is there.
    fn take_word(&mut self, word: &str) -> bool {
        let there = self.word() == word;
        if there {
            self.advance();
        }
        there
    }

    /// From `start` to the end of the last token taken.
    fn since(&self, start: u32) -> Span {
        Span::new(start, self.last_end.max(start))
    }

    /// The last character taken, for what is missing behind it.
    fn last_character(&self) -> Span {
        let before = (self.last_end as usize).saturating_sub(1);
        Span::new(self.source.floor_char_boundary(before) as u32, self.last_end)
    }

    /// What is looked at, for a diagnostic.
    fn found(&self) -> String {
        match self.token.kind {
            Kind::Eof => "the end of the script".to_owned(),
            _ => format!("`{}`", clip(self.text(self.token.span))),
        }
    }

    fn error(&mut self, message: impl Into<String>, span: Span) {
        self.sink.push(Diagnostic::error(message, span));
    }

    /// Reports that something else was expected here.
    fn expected(&mut self, what: &str) -> Failed {
        let message = format!("expected {what}, found {}", self.found());
        self.error(message, self.token.span);
        Failed
    }

    /// Takes the sign, which is needed.
    fn expect(&mut self, sign: &'static str, why: &str) -> Parse<Token> {
        if self.at(sign) { Ok(self.advance()) } else { Err(self.expected(&format!("`{sign}` {why}"))) }
    }

    /// Takes the sign that closes what was opened at `open`.
    fn close(&mut self, sign: &'static str, open: Span) -> Parse<Token> {
        if self.at(sign) {
            return Ok(self.advance());
        }
        let message = format!("expected `{sign}`, found {}", self.found());
        self.sink.push(Diagnostic::error(message, self.token.span).with_label(open, "opened here"));
        Err(Failed)
    }

    /// Takes a name, which is needed.
    fn name(&mut self, what: &str) -> Parse<Name> {
        if self.token.kind != Kind::Word {
            return Err(self.expected(what));
        }
        let token = self.advance();
        Ok(Name::new(self.text(token.span), token.span))
    }

    /// Takes a token that is a sign of one character and a name: `$x`, `@x`.
    fn sigiled(&mut self, kind: Kind, what: &str) -> Parse<Name> {
        if self.token.kind != kind {
            return Err(self.expected(what));
        }
        let token = self.advance();
        Ok(Name::new(&self.text(token.span)[1..], token.span))
    }

    /// Follows a rule that may hold itself.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            self.too_deep(self.token.span);
            return Err(Failed);
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Notes a node on top of others whose greatest height is given.
    fn raise(&mut self, below: u32, span: Span) -> Parse<()> {
        self.height = below + 1;
        if self.height < MAX_HEIGHT {
            return Ok(());
        }
        self.too_deep(span);
        Err(Failed)
    }

    fn too_deep(&mut self, span: Span) {
        let message = format!("nested too deeply: at most {MAX_DEPTH} levels, or {MAX_HEIGHT} operators in a row");
        self.sink.push(Diagnostic::error(message, span).with_hint("split it, with a variable for a part of it"));
    }
}

/// The beginning of a text that may be long.
fn clip(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.char_indices().nth(40).map_or(line, |(at, _)| &line[..at])
}
