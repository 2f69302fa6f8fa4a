//! Values as lines: `EXPR = VALUE`, or JSON objects.

use std::path::Path;

use bt_lang::Span;
use bt_lang::ast::{Block, ExprKind, StmtKind};
use console::output::Output;
use live_memory::{EvalError, Evaluator, Output as Values, Shape, Tree, Value};
use text::json::{begin, quoted};
use text::printable;
use whole_file::Access;

/// Prints the values of one expression after another.
pub(super) struct Printer {
    output: Output,
    shape: Shape,
    json: bool,
    text: String,
    /// Spans of the expressions whose text is printed before their value, each without and with
    /// leading parentheses.
    labelled: Vec<(Span, Span)>,
    failed: std::io::Result<()>,
    has_printed: bool,
}

impl Printer {
    pub(super) fn open(shape: Shape, json: bool, path: Option<&Path>) -> anyhow::Result<Self> {
        let output = Output::whole(path, Access::Umask)?;
        Ok(Self {
            output,
            shape,
            json,
            text: String::new(),
            labelled: Vec::new(),
            failed: Ok(()),
            has_printed: false,
        })
    }

    /// Begins the output of an expression with this text.
    pub(super) fn begin(&mut self, text: &str, block: &Block) {
        text.clone_into(&mut self.text);
        let own = block.stmts.iter().filter_map(|stmt| match &stmt.kind {
            StmtKind::Expr(expr) if !matches!(expr.kind, ExprKind::If(_) | ExprKind::Block(_)) => {
                Some((expr.span, stmt.span))
            }
            _ => None,
        });
        self.labelled = own.collect();
    }

    /// Writes the buffered output.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.has_printed |= !self.output.buffer.is_empty();
        std::mem::replace(&mut self.failed, Ok(()))?;
        Ok(self.output.flush()?)
    }

    /// Ends the output. If no expression has a value and there was an error, an old file stays.
    pub(super) fn finish(self, is_right: bool) -> anyhow::Result<()> {
        if self.has_printed || is_right {
            Ok(self.output.finish()?)
        } else {
            Ok(())
        }
    }

    fn line(&mut self, line: &str) {
        self.output.buffer.extend_from_slice(line.as_bytes());
        self.output.buffer.push(b'\n');
        if self.failed.is_ok() {
            self.failed = self.output.drain();
        }
    }
}

impl Values for Printer {
    fn value(
        &mut self,
        evaluator: &Evaluator<'_>,
        value: &Value,
        expr: Span,
    ) -> Result<(), EvalError> {
        console::interrupt::step();
        let tree = evaluator.tree(value, self.shape, expr)?;
        let labelled = self.labelled.iter().find(|(span, _)| *span == expr);
        let text = labelled.map_or(expr, |(_, whole)| *whole).text(&self.text);
        if self.json {
            let ty = ty(evaluator, value);
            let line = format!(
                "{},\"expr\":{},\"value_type\":{},\"value\":{}}}",
                begin("inspect.value"),
                quoted(text),
                ty.map_or_else(|| "null".to_owned(), |ty| quoted(&ty)),
                tree.json()
            );
            self.line(&line);
        } else if labelled.is_some() {
            let label = format!(
                "{} = {}",
                printable::text(text.as_bytes()),
                cast(evaluator, value, &tree)
            );
            let shown = tree.lines(label.chars().count());
            self.line(&format!("{label}{shown}"));
        } else {
            self.line(&tree.lines(0));
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if self.json {
            let line = format!("{},\"text\":{}}}", begin("inspect.text"), quoted(text));
            self.line(&line);
            return;
        }
        self.output.buffer.extend_from_slice(text.as_bytes());
        if self.failed.is_ok() {
            self.failed = self.output.drain();
        }
    }
}

/// Returns a value's type, as C writes it.
fn ty(evaluator: &Evaluator<'_>, value: &Value) -> Option<String> {
    let ty = match value {
        Value::Int { ty, .. } | Value::Float { ty, .. } => *ty,
        Value::Place(place) => place.ty,
        _ => return None,
    };
    Some(evaluator.types().display(ty))
}

/// Returns the type of a struct or pointer in parentheses, to precede its value; empty for others.
fn cast(evaluator: &Evaluator<'_>, value: &Value, tree: &Tree) -> String {
    match tree {
        Tree::Record { .. } | Tree::Pointer { .. } => {
            let ty = ty(evaluator, value).unwrap_or_default();
            format!("({}) ", printable::text(ty.as_bytes()))
        }
        _ => String::new(),
    }
}
