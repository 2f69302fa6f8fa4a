//! Statements.

use bpf_insn::Reg::R0;
use bpf_insn::{Helper, JumpOp, Label, Size, SourceSpan};

use super::{Emitter, RETURNED, Turn};
use crate::hir::{Expr, ExprKind, Stmt};
use crate::process;
use crate::ty::Ty;

impl Emitter<'_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if self.is_full() {
                break;
            }
            self.temporary(|emitter| emitter.stmt(stmt));
        }
    }

    /// Emits a statement; each form has its own emitter.
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Expr(ex) => self.effect(ex),
            Stmt::SetVar { var, value } => self.set_var(*var, value),
            Stmt::SetMap {
                map,
                key,
                value,
                span,
            } => {
                self.within(*span, |emitter| emitter.set_map(*map, key, value));
            }
            Stmt::Aggregate {
                map,
                key,
                args,
                span,
            } => {
                self.within(*span, |emitter| emitter.aggregate(*map, key, args.first()));
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => self.branch(cond, then, otherwise),
            Stmt::While { cond, body } => {
                self.within(cond.span, |emitter| emitter.while_loop(cond, body));
            }
            Stmt::Range {
                var,
                start,
                end,
                body,
            } => {
                self.within(end.span, |emitter| {
                    emitter.range_loop(*var, start, end, body);
                });
            }
            Stmt::EachKey { var, map, body } => self.map_loop(*var, *map, body),
            Stmt::Break => self.turn(true),
            Stmt::Continue => self.turn(false),
            Stmt::Return => self.leave(),
            Stmt::Event { action, args } => self.event(*action, args),
            Stmt::TracePipe { format, args } => self.trace_pipe(format, args),
            Stmt::Join {
                action,
                argv,
                space,
            } => self.join(*action, argv, *space),
            Stmt::Unrolled(turns) => self.unrolled(turns),
        }
    }

    /// Sets the part of the script under which the following instructions are listed.
    pub(super) fn set_span(&mut self, ex: &Expr) {
        self.asm.span(Some(SourceSpan {
            start: ex.span.start,
            end: ex.span.end,
        }));
    }

    /// Evaluates an expression for its side effects.
    pub(super) fn effect(&mut self, ex: &Expr) {
        self.within(ex.span, |emitter| emitter.effect_of(ex));
    }

    fn effect_of(&mut self, ex: &Expr) {
        self.set_span(ex);
        match &ex.kind {
            ExprKind::Block { stmts, value } => {
                self.stmts(stmts);
                self.effect(value);
            }
            ExprKind::StepMap { map, key, by, .. } => self.add_to_map(*map, key, *by),
            ExprKind::Int(_) | ExprKind::Str(_) | ExprKind::Var(_) => {}
            _ if ex.ty.is_scalar() || ex.ty == Ty::Void => self.scalar(ex),
            _ => {
                let place = self.mem(ex.ty.size());
                self.write(ex, &ex.ty, place);
            }
        }
    }

    /// Emits `$var = value`.
    /// ```text
    /// without a value: zeros
    /// a number: r0 = value; cut it to the variable's type; store it
    /// in memory: write the value to the variable, through a copy if it uses the variable itself
    /// ```
    fn set_var(&mut self, var: usize, value: &Expr) {
        self.set_span(value);
        let (ty, place) = (&self.body.vars[var].ty, self.vars[var]);
        if value.kind == ExprKind::Error {
            self.within(value.span, |emitter| {
                emitter.impossible("a variable is set to what was refused, and no diagnostic");
            });
        } else if value.ty == Ty::Unknown {
            // A declaration without a value.
            self.zero(place, Self::room(ty));
        } else if ty.is_scalar() {
            self.scalar(value);
            self.narrow_to(&value.ty, ty);
            self.store(place, Size::DW, R0);
        } else if mentions(value, var) {
            let copy = self.mem(ty.size());
            self.write(value, ty, copy);
            self.copy(place, copy, ty.size());
        } else {
            self.write(value, ty, place);
        }
    }

    fn branch(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        self.set_span(cond);
        let (no, done) = (self.asm.label("else"), self.asm.label("fi"));
        self.jump_unless(cond, no);
        self.stmts(then);
        if otherwise.is_empty() {
            self.asm.bind(no);
            return;
        }
        self.asm.jump(done).bind(no);
        self.stmts(otherwise);
        self.asm.bind(done);
    }

    /// Jumps to a label if a condition does not hold.
    /// ```text
    /// !a       goto no if a
    /// a && b   goto no unless a; goto no unless b
    /// a || b   goto yes if a; goto no unless b; yes:
    /// a < b    if a >= b goto no
    /// else     r0 = condition; if r0 == 0 goto no
    /// ```
    pub(super) fn jump_unless(&mut self, cond: &Expr, no: Label) {
        use bt_lang::ast::BinaryOp;
        match &cond.kind {
            ExprKind::Not(inner) => self.temporary(|emitter| emitter.jump_if(inner, no)),
            ExprKind::Binary {
                op: BinaryOp::LogAnd,
                left,
                right,
                ..
            } => {
                self.jump_unless(left, no);
                self.jump_unless(right, no);
            }
            ExprKind::Binary {
                op: BinaryOp::LogOr,
                left,
                right,
                ..
            } => {
                let yes = self.asm.label("or");
                self.jump_if(left, yes);
                self.jump_unless(right, no);
                self.asm.bind(yes);
            }
            ExprKind::Int(0) => {
                self.asm.jump(no);
            }
            ExprKind::Int(_) => {}
            _ => {
                if let Some((left, right, jump)) = unless(cond) {
                    self.compare(left, right, jump, no);
                    return;
                }
                self.temporary(|emitter| {
                    emitter.scalar(cond);
                    emitter.asm.jump_if(R0, JumpOp::Eq, 0, no);
                });
            }
        }
    }

    /// Jumps to a label if a condition holds.
    pub(super) fn jump_if(&mut self, cond: &Expr, yes: Label) {
        let no = self.asm.label("no");
        self.jump_unless(cond, no);
        self.asm.jump(yes).bind(no);
    }

    fn unrolled(&mut self, turns: &[Vec<Stmt>]) {
        let leave = self.asm.label("leave");
        for turn in turns {
            let next = self.asm.label("next");
            self.turns.push(Turn::Labels { leave, next });
            self.stmts(turn);
            self.turns.pop();
            self.asm.bind(next);
        }
        self.asm.bind(leave);
    }

    /// Emits `break` or `continue`.
    fn turn(&mut self, leave_loop: bool) {
        match self.turns.last() {
            Some(Turn::Labels { leave, next }) => {
                let to = if leave_loop { *leave } else { *next };
                self.asm.jump(to);
            }
            Some(Turn::Callback) => {
                self.asm.mov(R0, i32::from(leave_loop)).exit();
            }
            None => self.impossible("a break or continue outside of a loop"),
        }
    }

    /// Emits `return`, which ends the program; a callback ends it through its caller.
    pub(super) fn leave(&mut self) {
        if self.callbacks == 0 {
            let end = self.end;
            self.asm.jump(end);
            return;
        }
        self.returns = true;
        let frame = self.frame;
        self.asm
            .store(Size::DW, frame.at(RETURNED), 1)
            .mov(R0, 1)
            .exit();
    }

    /// Leaves the program if another process hit the probe and the kernel does not filter: see
    /// [`process`].
    /// ```text
    /// several are traced: if lookup(@followed, pid) goto mine
    /// in our PID namespace: if pid == PID goto mine
    /// in another one: if the pid there == PID goto mine
    /// return 0; mine:
    /// ```
    pub(super) fn pid_filter(&mut self) {
        if !self.context.filters_pid {
            return;
        }
        let Some(traced) = self.inputs.facts.traced() else {
            self.impossible("a filter for a process, and no process");
            return;
        };
        let mine = self.asm.label("mine");
        self.asm.comment("only what was asked for");
        let followed = self
            .tables
            .maps
            .iter()
            .position(|map| map.name == process::FOLLOWED);
        // This slot is not freed for variables: helpers must not access a variable's slot.
        let place = self.stack(8);
        match (traced.inside, followed) {
            (None, Some(map)) => {
                self.asm.call(Helper::GET_CURRENT_PID_TGID).rsh(R0, 32);
                self.store(place, Size::DW, R0);
                self.lookup(map, place);
                self.asm.jump_if(R0, JumpOp::Ne, 0, mine);
            }
            (None, None) => {
                self.asm.call(Helper::GET_CURRENT_PID_TGID).rsh(R0, 32);
                self.asm
                    .jump_if(R0, JumpOp::Eq, traced.pid.cast_signed(), mine);
            }
            (Some((namespace, pid)), _) => {
                self.id_in(namespace, true, place);
                self.asm.jump_if(R0, JumpOp::Eq, pid.cast_signed(), mine);
            }
        }
        self.asm.mov(R0, 0).exit().bind(mine);
    }
}

/// Returns a comparison's operands, and the jump to take if it does not hold.
fn unless(cond: &Expr) -> Option<(&Expr, &Expr, JumpOp)> {
    let ExprKind::Binary {
        op,
        left,
        right,
        signed,
    } = &cond.kind
    else {
        return None;
    };
    Some((
        left,
        right,
        super::arithmetic::comparison(*op, *signed)?.negated()?,
    ))
}

/// Returns true if computing a value reads a variable. It must then not overwrite the variable
/// piece by piece.
fn mentions(value: &Expr, var: usize) -> bool {
    let mut found = value.is_complex();
    value.walk(&mut |ex| found |= ex.kind == ExprKind::Var(var));
    found
}
