//! The parser: from text to a tree and diagnostics. It never fails.
//!
//! It is a recursive-descent parser with one function for each rule. If a rule does not match, it
//! reports a diagnostic and returns `ParseFailure`. The statement, field or item around it becomes an
//! `Error` node, and parsing continues after it. So each error is reported once, and all errors in
//! one run.
//!
//! Two limits make every input harmless: the depth of the recursion ([`MAX_DEPTH`]), and the height
//! of the tree ([`crate::ast::MAX_HEIGHT`]: `1+1+1+...` is high without deep recursion).

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

/// A parsed script.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree, with `Error` nodes for parts that could not be parsed.
    pub program: Program,
    /// Diagnostics, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Returns whether the script has no errors; it may have warnings.
    pub fn is_ok(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Options of the parser.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Arguments of the script, which replace `$1` in attach points. If `None`, such points are not
    /// split into their fields.
    pub params: Option<&'a [String]>,
    /// Mode for code about the memory of a process, outside of probes: `for` also walks lists, and
    /// `&` takes any address.
    pub of_process: bool,
}

/// Parses a script.
pub fn parse(source: &str) -> Parsed {
    parse_with(source, Options::default())
}

/// Parses a script with options.
pub fn parse_with(source: &str, options: Options<'_>) -> Parsed {
    if source.len() > MAX_SOURCE {
        let message = format!(
            "the script is too long: {} bytes, but at most {MAX_SOURCE} are read",
            source.len()
        );
        return Parsed {
            program: Program::default(),
            diagnostics: vec![Diagnostic::error(message, Span::empty(0))],
        };
    }
    let mut parser = Parser::new(source, 0, source.len(), options);
    let program = parser.program();
    Parsed {
        program,
        diagnostics: parser.sink.finish(),
    }
}

/// Parses statements outside of a probe, separated by `;`, for evaluation on the memory of a
/// process. A `for` may walk lists. The diagnostics are sorted by position; the block has `Error`
/// nodes if one of them is an error.
pub fn parse_statements(source: &str) -> (Block, Vec<Diagnostic>) {
    if source.len() > MAX_SOURCE {
        let message = format!(
            "the text is too long: {} bytes, but at most {MAX_SOURCE} are read",
            source.len()
        );
        let span = Span::empty(0);
        let block = Block {
            stmts: Vec::new(),
            value: None,
            span,
        };
        return (block, vec![Diagnostic::error(message, span)]);
    }
    let options = Options {
        of_process: true,
        ..Options::default()
    };
    let mut parser = Parser::new(source, 0, source.len(), options);
    let block = parser.statements();
    (block, parser.sink.finish())
}

/// Parses a text that is one expression, or returns the diagnostics.
pub fn parse_expression(source: &str) -> Result<Expr, Vec<Diagnostic>> {
    let (mut block, diagnostics) = parse_statements(source);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    match (block.stmts.pop(), block.stmts.is_empty()) {
        (
            Some(Stmt {
                kind: StmtKind::Expr(expr),
                ..
            }),
            true,
        ) => Ok(expr),
        _ => Err(vec![Diagnostic::error(
            "expected one expression",
            block.span,
        )]),
    }
}

/// Limit on the length of a script, in bytes.
const MAX_SOURCE: usize = 16 << 20;

/// Limit on the parser's recursion: nested blocks, parentheses and prefix operators.
pub const MAX_DEPTH: u32 = 100;

/// Something could not be parsed, and its diagnostic has been reported.
#[derive(Debug, Clone, Copy)]
struct ParseFailure;

/// The result of a rule.
type Parse<T> = Result<T, ParseFailure>;

struct Parser<'a> {
    source: &'a str,
    options: Options<'a>,
    lexer: Lexer<'a>,
    /// Current token, not yet taken.
    token: Token,
    /// Byte offset of the end of the last token taken.
    last_end: u32,
    comments: Vec<Comment>,
    sink: Sink,
    depth: u32,
    /// Height of the last finished node.
    height: u32,
    /// Definitions found between the fields of the current item.
    within_fields: Vec<Item>,
}

/// A position to return to.
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
        Self {
            source,
            options,
            lexer,
            token,
            last_end,
            comments,
            sink,
            depth: 0,
            height: 0,
            within_fields,
        }
    }

    /// Takes the current token.
    fn advance(&mut self) -> Token {
        let taken = self.token;
        self.last_end = taken.span.end;
        self.token = self.lexer.next(&mut self.comments);
        taken
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.lexer.at,
            token: self.token,
            last_end: self.last_end,
        }
    }

    fn reset(&mut self, mark: Mark) {
        (self.lexer.at, self.token, self.last_end) = (mark.at, mark.token, mark.last_end);
    }

    /// Returns the token after the current one.
    fn peek(&self) -> Token {
        // Comments between the two are collected when the parser gets there.
        self.lexer.clone().next(&mut Vec::new())
    }

    /// Continues at a byte offset.
    fn jump_to(&mut self, at: usize) {
        self.last_end = at as u32;
        self.lexer.at = at;
        self.token = self.lexer.next(&mut self.comments);
    }

    fn text(&self, span: Span) -> &'a str {
        self.source
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Returns the current word; empty if the token is no word.
    fn word(&self) -> &'a str {
        if self.token.kind == Kind::Word {
            self.text(self.token.span)
        } else {
            ""
        }
    }

    fn at(&self, sign: &'static str) -> bool {
        self.token.kind == Kind::Sign(sign)
    }

    fn at_end(&self) -> bool {
        self.token.kind == Kind::Eof
    }

    /// Takes the sign if it is the current token.
    fn take(&mut self, sign: &'static str) -> bool {
        let there = self.at(sign);
        if there {
            self.advance();
        }
        there
    }

    /// Takes the word if it is the current token.
    fn take_word(&mut self, word: &str) -> bool {
        let there = self.word() == word;
        if there {
            self.advance();
        }
        there
    }

    /// Returns the span from `start` to the end of the last token taken.
    fn since(&self, start: u32) -> Span {
        Span::new(start, self.last_end.max(start))
    }

    /// Returns the span of the last character taken, to mark something missing after it.
    fn last_character(&self) -> Span {
        let before = (self.last_end as usize).saturating_sub(1);
        Span::new(
            self.source.floor_char_boundary(before) as u32,
            self.last_end,
        )
    }

    /// Returns the current token for a diagnostic.
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
    fn expected(&mut self, what: &str) -> ParseFailure {
        let message = format!("expected {what}, found {}", self.found());
        self.error(message, self.token.span);
        ParseFailure
    }

    /// Takes a required sign.
    fn expect(&mut self, sign: &'static str, why: &str) -> Parse<Token> {
        if self.at(sign) {
            Ok(self.advance())
        } else {
            Err(self.expected(&format!("`{sign}` {why}")))
        }
    }

    /// Takes the sign that closes the one at `open`.
    fn close(&mut self, sign: &'static str, open: Span) -> Parse<Token> {
        if self.at(sign) {
            return Ok(self.advance());
        }
        let message = format!("expected `{sign}`, found {}", self.found());
        self.sink
            .push(Diagnostic::error(message, self.token.span).with_label(open, "opened here"));
        Err(ParseFailure)
    }

    /// Takes a required name.
    fn name(&mut self, what: &str) -> Parse<Name> {
        if self.token.kind != Kind::Word {
            return Err(self.expected(what));
        }
        let token = self.advance();
        Ok(Name::new(self.text(token.span), token.span))
    }

    /// Takes a name with a sigil: `$x`, `@x`.
    fn sigiled(&mut self, kind: Kind, what: &str) -> Parse<Name> {
        if self.token.kind != kind {
            return Err(self.expected(what));
        }
        let token = self.advance();
        Ok(Name::new(&self.text(token.span)[1..], token.span))
    }

    /// Applies a recursive rule, unless it is nested too deeply.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            self.too_deep(self.token.span);
            return Err(ParseFailure);
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Sets the height of a node, given the maximum height of its children; fails at
    /// [`MAX_HEIGHT`].
    fn raise(&mut self, below: u32, span: Span) -> Parse<()> {
        self.height = below + 1;
        if self.height < MAX_HEIGHT {
            return Ok(());
        }
        self.too_deep(span);
        Err(ParseFailure)
    }

    fn too_deep(&mut self, span: Span) {
        let message = format!(
            "nested too deeply: at most {MAX_DEPTH} levels, or {MAX_HEIGHT} operators in a row"
        );
        self.sink.push(
            Diagnostic::error(message, span)
                .with_hint("split it, with a variable for a part of it"),
        );
    }
}

/// Returns at most 40 characters of the first line.
fn clip(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.char_indices()
        .nth(40)
        .map_or(line, |(at, _)| &line[..at])
}
