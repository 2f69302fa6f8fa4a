//! Tables of names that a script may read as if it had filled them: `@target[state]` and
//! `@subsystem[state]`, which SPDK's scripts expect, and `@syscall[number]`. The names of
//! `syscall_name(number)` and `__NR_read` come from here, too.
//!
//! SPDK generates the first two as maps that a `BEGIN` fills, from the target's debug information (`scripts/bpf/gen_enums.sh`). Here
//! a read of a table that the script itself never fills becomes a cast to an enumeration, whose values print as their
//! names: no map, nothing to run first, nothing to print at the end.

use std::collections::HashSet;

use bt_lang::Span;
use bt_lang::ast::visit::{VisitMut, walk_expr, walk_item, walk_stmt};
use bt_lang::ast::{
    Base, CEnum, CVariant, Expr, ExprKind, IntLit, IntSuffix, Item, ItemKind, MapRef, Name,
    Program, RecordKind, Stmt, StmtKind, Type, TypeKind,
};

/// A table of names.
struct Table {
    /// Name of the map.
    map: &'static str,
    /// Name of the enumeration in the target's debug information.
    source: &'static str,
    /// Prefix of its names, which scripts do not see.
    prefix: &'static str,
    /// Names for targets without debug information.
    names: Names,
}

/// Names that are known beforehand.
enum Names {
    /// Names from 0 on: those of SPDK's newest version.
    Listed(&'static [&'static str]),
    /// System calls of the machine that we run on.
    Syscalls,
}

/// All tables.
const TABLES: [Table; 3] = [
    Table {
        map: "target",
        source: "nvmf_tgt_state",
        prefix: "NVMF_TGT_",
        // module/event/subsystems/nvmf/nvmf_tgt.c after v26.05. Up to RUNNING all versions agree.
        names: Names::Listed(&[
            "INIT_NONE",
            "INIT_CREATE_TARGET",
            "INIT_CREATE_POLL_GROUPS",
            "INIT_START_SUBSYSTEMS",
            "RUNNING",
            "FINI_STOP_SUBSYSTEMS",
            "FINI_STOP_LISTEN",
            "FINI_DESTROY_SUBSYSTEMS",
            "FINI_DESTROY_POLL_GROUPS",
            "FINI_DESTROY_TARGET",
            "STOPPED",
            "ERROR",
        ]),
    },
    Table {
        map: "subsystem",
        source: "spdk_nvmf_subsystem_state",
        prefix: "SPDK_NVMF_SUBSYSTEM_",
        // include/spdk/nvmf.h, the same in all versions from v21.01 on.
        names: Names::Listed(&[
            "INACTIVE",
            "ACTIVATING",
            "ACTIVE",
            "PAUSING",
            "PAUSED",
            "RESUMING",
            "DEACTIVATING",
        ]),
    },
    Table {
        map: "syscall",
        source: "syscall",
        prefix: "",
        names: Names::Syscalls,
    },
];

/// Replaces the tables that the script reads and never fills by enumerations. `known` returns the
/// names and values of an enumeration of the target, if its debug information has it.
pub(crate) fn put_in(
    program: &mut Program,
    mut known: impl FnMut(&str) -> Option<Vec<(String, i64)>>,
) {
    let mut uses = MapUses::default();
    program
        .items
        .iter_mut()
        .for_each(|item| walk_item(&mut uses, item));
    for table in &TABLES {
        let is_called = matches!(table.names, Names::Syscalls) && uses.calls;
        if !is_called && (!uses.read.contains(table.map) || uses.filled.contains(table.map)) {
            continue;
        }
        let values = known(table.source).unwrap_or_else(|| table.names.values());
        let mut casts = CastRewriter {
            table,
            reads: !uses.filled.contains(table.map),
        };
        program
            .items
            .iter_mut()
            .for_each(|item| walk_item(&mut casts, item));
        program.items.push(table.definition(&values));
    }
}

impl Names {
    fn values(&self) -> Vec<(String, i64)> {
        match self {
            Self::Listed(names) => names
                .iter()
                .zip(0..)
                .map(|(name, value)| ((*name).to_owned(), value))
                .collect(),
            Self::Syscalls => syscalls::Sysno::iter()
                .map(|call| (call.name().to_owned(), i64::from(call.id())))
                .collect(),
        }
    }
}

impl Table {
    /// Returns a name that no script has for anything else.
    fn enum_name(&self) -> String {
        format!("dptrace_{}", self.source)
    }

    fn definition(&self, values: &[(String, i64)]) -> Item {
        let variants = values.iter().map(|(name, value)| CVariant {
            name: Name::new(name.strip_prefix(self.prefix).unwrap_or(name), NOWHERE),
            value: Some(number(*value)),
        });
        let definition = CEnum {
            name: Some(Name::new(self.enum_name(), NOWHERE)),
            variants: variants.collect(),
            span: NOWHERE,
        };
        Item {
            kind: ItemKind::Enum(definition),
            span: NOWHERE,
        }
    }
}

/// Place of code that no script has written.
const NOWHERE: Span = Span::empty(0);

fn number(value: i64) -> Expr {
    let magnitude = value.unsigned_abs();
    let text = magnitude.to_string();
    let literal = IntLit {
        value: magnitude,
        base: Base::Decimal,
        suffix: IntSuffix::None,
        text,
    };
    let literal = Expr::new(ExprKind::Int(literal), NOWHERE);
    if value >= 0 {
        return literal;
    }
    Expr::new(
        ExprKind::Unary {
            op: bt_lang::ast::UnaryOp::Neg,
            operand: Box::new(literal),
        },
        NOWHERE,
    )
}

/// Maps that are read by a key, and maps that are filled.
#[derive(Default)]
struct MapUses {
    read: HashSet<String>,
    filled: HashSet<String>,
    /// True if the script names system calls in another way.
    calls: bool,
}

impl VisitMut for MapUses {
    fn stmt(&mut self, stmt: &mut Stmt) {
        if let StmtKind::Assign {
            target:
                Expr {
                    kind: ExprKind::Map(map),
                    ..
                },
            ..
        } = &stmt.kind
        {
            self.filled.insert(map.name.text.clone());
        }
        walk_stmt(self, stmt);
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let ExprKind::Map(MapRef { name, keys }) = &expr.kind
            && keys.len() == 1
        {
            self.read.insert(name.text.clone());
        }
        self.calls |= match &expr.kind {
            ExprKind::Call { func, .. } => func.text == CALL_NAME,
            ExprKind::Ident(name) => name.starts_with(NUMBER),
            _ => false,
        };
        walk_expr(self, expr);
    }
}

/// Function that names a call.
const CALL_NAME: &str = "syscall_name";
/// Prefix of a call's name for its number, as in C's `syscall.h`.
const NUMBER: &str = "__NR_";

/// Turns reads of a table into casts, and names of system calls into their numbers.
struct CastRewriter {
    table: &'static Table,
    /// True if reads of the map are the table's.
    reads: bool,
}

impl CastRewriter {
    /// Returns the number of a call such as `__NR_read`.
    fn call_number(&self, expr: &Expr) -> Option<Expr> {
        let ExprKind::Ident(name) = &expr.kind else {
            return None;
        };
        let call = name
            .strip_prefix(NUMBER)
            .filter(|_| matches!(self.table.names, Names::Syscalls))?;
        let known = call.parse::<syscalls::Sysno>().ok()?;
        Some(Expr {
            span: expr.span,
            ..number(i64::from(known.id()))
        })
    }
}

impl VisitMut for CastRewriter {
    fn expr(&mut self, expr: &mut Expr) {
        walk_expr(self, expr);
        if let Some(number) = self.call_number(expr) {
            *expr = number;
            return;
        }
        let ExprKind::Map(MapRef { name, keys }) = &mut expr.kind else {
            return;
        };
        if !self.reads || name.text != self.table.map || keys.len() != 1 {
            return;
        }
        let Some(operand) = keys.pop() else { return };
        let tag = TypeKind::Tagged(
            RecordKind::Enum,
            Name::new(self.table.enum_name(), expr.span),
        );
        expr.kind = ExprKind::Cast {
            ty: Box::new(Type::new(tag, expr.span)),
            operand: Box::new(operand),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is made where it is given"
    )]
    fn after(script: &str, known: Option<Vec<(String, i64)>>) -> String {
        let mut program = bt_lang::parse(script).program;
        put_in(&mut program, |_| known.clone());
        bt_lang::fmt::format(&program, script)
    }

    #[test]
    fn a_table_that_is_only_read_becomes_an_enumeration() {
        let text = after("usdt:/x:y { printf(\"%s\", @target[arg1]); }", None);
        assert!(text.contains("(enum dptrace_nvmf_tgt_state)arg1"), "{text}");
        assert!(text.contains("RUNNING = 4"), "{text}");
        assert!(!text.contains('@'), "{text}");
    }

    #[test]
    fn the_targets_own_names_come_first() {
        let known = vec![
            ("NVMF_TGT_INIT_NONE".to_owned(), 0),
            ("NVMF_TGT_OTHER".to_owned(), -7),
        ];
        let text = after("usdt:/x:y { printf(\"%s\", @target[arg1]); }", Some(known));
        assert!(
            text.contains("OTHER = -7") && !text.contains("RUNNING"),
            "{text}"
        );
    }

    #[test]
    fn system_calls_have_their_names() {
        let text = after(
            "tracepoint:raw_syscalls:sys_enter { @[@syscall[args.id]] = count(); }",
            None,
        );
        assert!(text.contains("(enum dptrace_syscall)args.id"), "{text}");
        let read = if cfg!(target_arch = "aarch64") {
            "read = 63"
        } else {
            "read = 0"
        };
        assert!(text.contains(read), "{text}");
    }

    #[test]
    fn calls_are_named_by_function_and_by_number() {
        let text = after(
            "begin { @syscall[1] = 2; print(syscall_name(__NR_read)); print(@syscall[1]); }",
            None,
        );
        let read = if cfg!(target_arch = "aarch64") {
            "63"
        } else {
            "0"
        };
        assert!(
            text.contains(&format!("syscall_name({read})"))
                && text.contains("enum dptrace_syscall"),
            "{text}"
        );
        assert!(text.contains("print(@syscall[1])"), "{text}");
        assert!(!after("begin { print(1); }", None).contains("enum"));
    }

    #[test]
    fn a_table_that_the_script_fills_stays() {
        let script = "begin { @target[0] = \"A\"; } usdt:/x:y { printf(\"%s\", @target[arg1]); }";
        let text = after(script, None);
        assert!(
            text.contains("@target[arg1]") && !text.contains("enum"),
            "{text}"
        );
        let other = after("usdt:/x:y { @subsystem = count(); }", None);
        assert!(!other.contains("enum"), "{other}");
    }
}
