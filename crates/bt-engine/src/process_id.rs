//! `__PID__` in a script: the process's number, which SPDK's wrapper script would put into the text.

use bt_lang::ast::visit::{VisitMut, walk_expr, walk_item};
use bt_lang::ast::{Base, Expr, ExprKind, IntLit, IntSuffix, Program};

use crate::Error;

const WORD: &str = "__PID__";

/// Puts the number in. Without one, a script that needs it can't run.
pub(crate) fn put_in(program: &mut Program, pid: Option<u32>) -> Result<(), Error> {
    let mut visitor = Numbers { pid: u64::from(pid.unwrap_or(0)), used: false };
    program.items.iter_mut().for_each(|item| walk_item(&mut visitor, item));
    if visitor.used && pid.is_none() {
        return Err(Error::NeedsProcess);
    }
    Ok(())
}

struct Numbers {
    pid: u64,
    used: bool,
}

impl VisitMut for Numbers {
    fn expr(&mut self, expr: &mut Expr) {
        if matches!(&expr.kind, ExprKind::Ident(name) if name == WORD) {
            let (value, text) = (self.pid, self.pid.to_string());
            expr.kind = ExprKind::Int(IntLit { value, base: Base::Decimal, suffix: IntSuffix::None, text });
            self.used = true;
        }
        walk_expr(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_becomes_the_number() {
        let script = "tracepoint:a:b /pid == __PID__/ { @ = count(); }";
        let mut program = bt_lang::parse(script).program;
        put_in(&mut program, Some(42)).unwrap();
        assert!(bt_lang::fmt::format(&program, script).contains("pid == 42"));
        let mut program = bt_lang::parse(script).program;
        assert!(put_in(&mut program, None).unwrap_err().to_string().contains(WORD));
        put_in(&mut bt_lang::parse("begin { exit(); }").program, None).unwrap();
    }
}
