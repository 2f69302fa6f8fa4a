//! Tests of the reaction to a state that should be impossible.

use std::sync::Arc;

use elf::ProbePoint;
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;

use super::*;
use crate::facts::{ConfigFact, FunctionPlace, KernelFacts, NotFound, UsdtPlaces};
use crate::hir::{Expr, ExprKind, Intrinsic, Stmt};
use crate::ty::Ty;
use crate::ty::U64;

/// Machine that has nothing.
struct Nothing;

fn absent<T>() -> Result<T, NotFound> {
    Err(NotFound {
        message: "there is nothing".into(),
        absent: true,
        hints: Vec::new(),
    })
}

impl TargetFacts for Nothing {
    fn arch(&self) -> Arch {
        Arch::X86_64
    }
    fn kernel(&self) -> KernelFacts {
        KernelFacts::ALL
    }
    fn kernel_btf(&self) -> Option<&[u8]> {
        None
    }
    fn debug_elf(&self, _: &str) -> Option<&[u8]> {
        None
    }
    fn functions(
        &self,
        _: Option<&str>,
        _: &str,
        _: bool,
        _: ProbePoint,
    ) -> Result<Vec<FunctionPlace>, NotFound> {
        absent()
    }
    fn address(&self, _: Option<&str>, _: u64, _: ProbePoint) -> Result<FunctionPlace, NotFound> {
        absent()
    }
    fn source_line(
        &self,
        _: &str,
        _: &str,
        _: u32,
        _: Option<u32>,
    ) -> Result<FunctionPlace, NotFound> {
        absent()
    }
    fn usdt(&self, _: Option<&str>, _: Option<&str>, _: &str) -> Result<Vec<UsdtPlaces>, NotFound> {
        absent()
    }
    fn tracepoints(&self, _: &str, _: &str) -> Result<Vec<(String, String)>, NotFound> {
        absent()
    }
    fn tracepoint(&self, _: &str, _: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        absent()
    }
    fn raw_tracepoints(&self, _: Option<&str>, _: &str) -> Result<Vec<String>, NotFound> {
        absent()
    }
    fn kernel_functions(&self, _: Option<&str>, _: &str) -> Result<Vec<String>, NotFound> {
        absent()
    }
    fn kernel_symbol(&self, _: &str) -> Option<u64> {
        None
    }
    fn user_symbol(&self, _: &str, _: &str) -> Option<(u64, u64)> {
        None
    }
    fn cgroup_id(&self, _: &str) -> Option<u64> {
        None
    }
    fn pid(&self) -> Option<u32> {
        None
    }
    fn params(&self) -> &[String] {
        &[]
    }
    fn environment(&self) -> Vec<ConfigFact> {
        Vec::new()
    }
    fn possible_cpus(&self) -> u32 {
        1
    }
    fn online_cpus(&self) -> u32 {
        1
    }
    fn start_time(&self) -> u64 {
        0
    }
    fn child(&self) -> Option<u32> {
        None
    }
    fn pid_namespace(&self) -> Option<(u64, u64)> {
        None
    }
    fn allows_unsafe(&self) -> bool {
        false
    }
}

const SCRIPT: &str = "begin { @a = count(); $b = 1; print($b); }";

fn span_of(text: &str) -> Span {
    let start = SCRIPT.find(text).unwrap() as u32;
    Span {
        start,
        end: start + text.len() as u32,
    }
}

/// Compiles [`SCRIPT`] with extra statements behind its own, which the checker would refuse.
fn compiled_with(stmts: Vec<Stmt>) -> (Compilation, Option<InternalError>) {
    let mut program = bt_lang::parse(SCRIPT).program;
    let used: Vec<UsedBuiltins> = program
        .items
        .iter_mut()
        .map(UsedBuiltins::collect)
        .collect();
    let (ctx, mut instances) =
        check_program((&program, &used), &Nothing, Vec::new(), program.items.len());
    instances[0].body.stmts.extend(stmts);
    finish(ctx, &instances)
}

#[test]
fn a_script_as_it_should_be_has_no_impossible_state() {
    let (compiled, impossible) = compiled_with(Vec::new());
    assert!(
        compiled.script.is_some() && impossible.is_none(),
        "{:?}",
        compiled.diagnostics
    );
}

#[test]
fn an_impossible_state_becomes_one_error_and_no_script() {
    let span = span_of("print($b)");
    let number = |kind| Expr::new(U64, kind, span);
    let key = || Expr::int(0, Ty::Void, span);
    let damages: [(&str, Stmt); 7] = [
        (
            "an expression that was refused, and no diagnostic",
            Stmt::Expr(Expr::error(span)),
        ),
        (
            "a variable is set to what was refused, and no diagnostic",
            Stmt::SetVar {
                var: 0,
                value: Expr::error(span),
            },
        ),
        (
            "a function that gives a value in memory where a number is wanted",
            Stmt::Expr(number(ExprKind::Intrinsic(Intrinsic::Comm, Vec::new()))),
        ),
        (
            "a function without its argument",
            Stmt::Expr(number(ExprKind::Intrinsic(Intrinsic::Bswap(4), Vec::new()))),
        ),
        (
            "a value of a map that holds an aggregation, or nothing",
            Stmt::SetMap {
                map: 0,
                key: key(),
                value: Expr::int(1, U64, span),
                span,
            },
        ),
        (
            "a value in memory where a number is wanted",
            Stmt::Expr(number(ExprKind::Tuple(Vec::new()))),
        ),
        (
            "a pointer that the kernel can't follow",
            Stmt::Expr(number(ExprKind::Intrinsic(
                Intrinsic::SocketCookie,
                vec![key()],
            ))),
        ),
    ];
    for (what, stmt) in damages {
        let (compiled, impossible) = compiled_with(vec![stmt]);
        assert!(compiled.script.is_none(), "{what}");
        let [found] = compiled.diagnostics.as_slice() else {
            panic!("{what}: {:?}", compiled.diagnostics)
        };
        assert!(
            found.is_error() && found.message.contains("internal error, please report"),
            "{}",
            found.message
        );
        assert!(found.message.contains(what), "{what}: {}", found.message);
        assert_eq!(found.span, span, "{what}");
        assert_eq!(impossible.unwrap().to_string(), found.message);
    }
}

#[test]
fn the_message_names_the_line_of_the_compiler() {
    let (compiled, _) = compiled_with(vec![Stmt::Break]);
    assert!(
        compiled.diagnostics[0].message.contains("stmt.rs:"),
        "{:?}",
        compiled.diagnostics
    );
}

#[test]
#[cfg_attr(
    debug_assertions,
    should_panic(expected = "internal error, please report")
)]
fn tests_and_fuzz_targets_panic() {
    report(compiled_with(vec![Stmt::Continue]));
}
