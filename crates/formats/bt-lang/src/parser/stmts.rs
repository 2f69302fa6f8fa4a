//! Blocks and statements.

use super::{Parse, ParseFailure, Parser};
use crate::ast::{BinaryOp, Block, Expr, ExprKind, ForIter, Name, Stmt, StmtKind};
use crate::diag::Diagnostic;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses `{ ... }`. A last expression without `;` becomes its value.
    pub(super) fn block(&mut self) -> Parse<Block> {
        self.nested(Self::block_inner)
    }

    /// Parses `{ ... }` whose value cannot be used.
    pub(super) fn body(&mut self) -> Parse<Block> {
        let mut block = self.block()?;
        void_block(&mut block);
        Ok(block)
    }

    /// Parses statements without enclosing braces, up to the end of the text.
    pub(super) fn statements(&mut self) -> Block {
        let mut block = Block {
            stmts: Vec::new(),
            value: None,
            span: self.token.span,
        };
        while !self.at_end() {
            if self.at("}") {
                let message = "there is no `{` that this `}` closes";
                self.error(message, self.token.span);
                self.advance();
                continue;
            }
            if !self.take(";") {
                self.height = 0;
                self.statement_or_value(&mut block);
            }
        }
        block.span = self.since(block.span.start);
        block
    }

    fn block_inner(&mut self) -> Parse<Block> {
        let open = self.expect("{", "to open a block")?.span;
        let mut block = Block {
            stmts: Vec::new(),
            value: None,
            span: open,
        };
        let mut height = 0;
        while !self.at("}") {
            if self.at_end() || self.begins_probe() {
                let message = format!("expected `}}` to end a block, found {}", self.found());
                self.sink.push(
                    Diagnostic::error(message, self.token.span)
                        .with_label(open, "the block begins here"),
                );
                block.span = self.since(open.start);
                return Ok(block);
            }
            if self.take(";") {
                continue;
            }
            self.height = 0;
            self.statement_or_value(&mut block);
            height = height.max(self.height);
        }
        self.advance();
        block.span = self.since(open.start);
        self.raise(height, open)?;
        Ok(block)
    }

    /// Parses a statement or value into the block; an invalid one becomes an `Error`.
    fn statement_or_value(&mut self, block: &mut Block) {
        let start = self.token.span.start;
        let depth = self.depth;
        let stmt = match self.statement() {
            Ok(StmtKind::Expr(value)) if self.at("}") => {
                block.value = Some(Box::new(value));
                return;
            }
            Ok(mut kind) => {
                let span = self.since(start);
                if let StmtKind::Expr(expr) = &mut kind {
                    void_expr(expr);
                }
                let ends_itself = matches!(
                    &kind,
                    StmtKind::While { .. } | StmtKind::Unroll { .. } | StmtKind::For { .. }
                ) || matches!(
                    &kind,
                    StmtKind::Expr(Expr {
                        kind: ExprKind::If(_) | ExprKind::Block(_),
                        ..
                    })
                );
                if !ends_itself {
                    self.end_of_statement(start);
                } else if self.at(";") {
                    self.advance();
                }
                Stmt::new(kind, span)
            }
            Err(ParseFailure) => {
                self.height = 0;
                self.skip_statement(start);
                Stmt::new(StmtKind::Error, self.since(start))
            }
        };
        self.depth = depth;
        block.stmts.push(stmt);
        if self.token.span.start == start && !self.at("}") {
            // Nothing was consumed, so skip the token.
            self.advance();
        }
    }

    /// Takes the `;`, or reports that it is missing.
    fn end_of_statement(&mut self, start: u32) {
        if self.take(";") || self.at("}") || self.at_end() {
            return;
        }
        let at = self.last_character();
        if self.token.first || self.begins_statement() {
            self.error("expected `;` after this statement", at);
            return;
        }
        let message = format!("expected `;` after this statement, found {}", self.found());
        self.error(message, self.token.span);
        self.skip_statement(start);
    }

    /// Parses a statement without its `;`.
    fn statement(&mut self) -> Parse<StmtKind> {
        match self.word() {
            "let" => self.let_statement(),
            "while" => {
                let (cond, body) = self.repeated()?;
                Ok(StmtKind::While { cond, body })
            }
            "unroll" => {
                let (count, body) = self.repeated()?;
                Ok(StmtKind::Unroll { count, body })
            }
            "for" => self.for_statement(),
            "break" => {
                self.advance();
                Ok(StmtKind::Break)
            }
            "continue" => {
                self.advance();
                Ok(StmtKind::Continue)
            }
            "return" => self.return_statement(),
            "import" if self.peek().kind == Kind::Str => {
                self.advance();
                Ok(StmtKind::Import(self.string_name("a file")?))
            }
            "_" if self.peek().kind == Kind::Sign("=") => {
                self.advance();
                self.advance();
                Ok(StmtKind::Discard(self.expression()?))
            }
            _ => self.assignment_or_expression(),
        }
    }

    fn let_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        if self.token.kind == Kind::Map {
            let message =
                "a map is declared outside of probes, and a map that isn't declared needs no `let`";
            self.error(message, self.token.span);
            return Err(ParseFailure);
        }
        let var = self.sigiled(Kind::Var, "a variable (`$name`) after `let`")?;
        let mut height = 0;
        let ty = if self.take(":") {
            Some(self.ty()?)
        } else {
            None
        };
        height = height.max(if ty.is_some() { self.height } else { 0 });
        let value = if self.take("=") {
            Some(self.expression()?)
        } else {
            None
        };
        height = height.max(if value.is_some() { self.height } else { 0 });
        self.raise(height, var.span)?;
        Ok(StmtKind::Let { var, ty, value })
    }

    fn return_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        if self.at(";") || self.at("}") {
            return Ok(StmtKind::Return(None));
        }
        Ok(StmtKind::Return(Some(self.expression()?)))
    }

    /// Parses `while` and `unroll`: a keyword, an expression, a block.
    fn repeated(&mut self) -> Parse<(Expr, Block)> {
        let keyword = self.advance();
        let expr = self.expression()?;
        let height = self.height;
        let body = self.body()?;
        self.raise(height.max(self.height), keyword.span)?;
        Ok((expr, body))
    }

    fn for_statement(&mut self) -> Parse<StmtKind> {
        let keyword = self.advance();
        let open = if self.at("(") {
            Some(self.advance().span)
        } else {
            None
        };
        let var = self.sigiled(Kind::Var, "the loop's variable (`$name`)")?;
        self.expect(":", "after the loop's variable")?;
        let first = self.binary(0)?;
        let mut height = self.height;
        let iter = if self.take("..") {
            let end = self.binary(0)?;
            height = height.max(self.height);
            ForIter::Range { start: first, end }
        } else {
            self.map_to_walk(first)?
        };
        if let Some(open) = open {
            self.close(")", open)?;
        }
        let body = self.body()?;
        self.raise(height.max(self.height), keyword.span)?;
        Ok(StmtKind::For { var, iter, body })
    }

    fn map_to_walk(&mut self, expr: Expr) -> Parse<ForIter> {
        match expr.kind {
            ExprKind::Map(map) if map.keys.is_empty() => Ok(ForIter::Map(map.name)),
            _ if self.options.of_process => Ok(ForIter::List(expr)),
            _ => {
                let what = "a `for` walks a map or a range";
                let hint = "write `for ($kv : @map)` or `for ($i : 0..10)`";
                self.sink
                    .push(Diagnostic::error(what, expr.span).with_hint(hint));
                Err(ParseFailure)
            }
        }
    }

    fn assignment_or_expression(&mut self) -> Parse<StmtKind> {
        let target = self.expression()?;
        let height = self.height;
        if !self.at_assignment() {
            return Ok(StmtKind::Expr(target));
        }
        let op = self.assignment_operator();
        let value = self.expression()?;
        self.raise(height.max(self.height), target.span)?;
        self.check_target(&target);
        Ok(StmtKind::Assign { target, op, value })
    }

    /// Returns whether the current token is `=`, `+=` or the like.
    fn at_assignment(&self) -> bool {
        // The other signs that end in `=` are comparisons.
        let Kind::Sign(sign) = self.token.kind else {
            return false;
        };
        sign.ends_with('=') && !["==", "!=", "<=", ">="].contains(&sign)
    }

    /// Takes an assignment sign, and returns the operator before its `=`, if any.
    fn assignment_operator(&mut self) -> Option<BinaryOp> {
        let sign = self.advance().span;
        let op = self.text(sign).trim_end_matches('=');
        BinaryOp::TABLE
            .iter()
            .find(|row| row.1 == op)
            .map(|row| row.0)
    }

    fn check_target(&mut self, target: &Expr) {
        let message = match target.kind {
            ExprKind::Var(_) | ExprKind::Map(_) => return,
            ExprKind::Field { .. } | ExprKind::TupleField { .. } | ExprKind::Index { .. } => {
                "parts of a value can't be set, only variables and maps"
            }
            _ => "only variables (`$name`) and maps (`@name`) can be set",
        };
        self.sink.push(
            Diagnostic::error(message, target.span)
                .with_hint("make a new value, and set all of it"),
        );
    }

    /// Takes a string as a name.
    pub(super) fn string_name(&mut self, what: &str) -> Parse<Name> {
        if self.token.kind != Kind::Str {
            return Err(self.expected(&format!("{what} in quotes")));
        }
        let token = self.advance();
        let bytes = self.unquoted(token.span);
        Ok(Name::new(String::from_utf8_lossy(&bytes), token.span))
    }
}

/// Turns the values of the blocks of a statement into statements.
pub(crate) fn void_stmt(stmt: &mut Stmt) {
    if let StmtKind::Expr(expr) = &mut stmt.kind {
        void_expr(expr);
    }
}

/// Turns the value of a block into its last statement.
fn void_block(block: &mut Block) {
    if let Some(value) = block.value.take() {
        let mut value = *value;
        void_expr(&mut value);
        let span = value.span;
        block.stmts.push(Stmt::new(StmtKind::Expr(value), span));
    }
}

/// Turns the values of the blocks of an expression statement into statements.
fn void_expr(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Block(block) => void_block(block),
        ExprKind::If(chain) => {
            chain
                .arms
                .iter_mut()
                .for_each(|(_, block)| void_block(block));
            chain.otherwise.iter_mut().for_each(void_block);
        }
        _ => {}
    }
}
