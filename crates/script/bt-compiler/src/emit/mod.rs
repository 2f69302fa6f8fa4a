//! Emitter: from the typed tree to instructions.
//!
//! A number is computed in r0. If it is needed after another one has been computed, it is saved in
//! r7, r8 or r9, or on the stack if those are taken. r6 holds the context; in callbacks (loops are
//! callbacks) it holds the address of the program's frame. That frame has the variables and
//! temporary values of the program and its callbacks. A value in memory is written to its
//! destination. A value that does not fit on the stack is in a scratch area; each CPU has a few
//! (see [`scratch`]).
//!
//! docs/dev/compiler.md describes registers, frame and scratch memory. In the pseudo-code above
//! emitters, a name in capitals is a constant of the emitter, and a line is one or a few
//! instructions.

pub(crate) mod aggregate;
mod arithmetic;
mod event;
mod failures;
mod foreign;
mod frame;
mod hits;
mod intrinsics;
mod kernel_pointers;
pub(crate) mod key_table;
mod loops;
mod maps;
mod mem_eq;
mod place;
mod reads;
mod scalar;
pub(crate) mod scratch;
mod stmt;
mod strings;
mod write;

use bpf_insn::Reg::{R0, R6, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, Code, Label, Reg, Size};
use bt_lang::Span;

use super::check::Body;
use super::ctx::{Inputs, Tables};
use super::hir::Expr;
use super::internal::InternalError;
use super::probe::Context;
use bpf_program::offset;
use bt_abi::LostCounters;
use bt_abi::failure::Failures;
use place::{Base, MemoryRef};

pub(crate) use key_table::{has_key_table, key_table_def, key_table_name, key_table_offset};
pub(crate) use maps::{bpf_name, key_size};

/// Function that a helper calls back: the body of a loop.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sub {
    pub(crate) name: String,
    pub(crate) code: Code,
}

/// Code of a program and its callbacks.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EmittedProgram {
    pub(crate) code: Code,
    pub(crate) subs: Vec<Sub>,
    /// Bytes of scratch memory that it needs; 0 for none.
    pub(crate) scratch: u32,
    /// True if it may sleep, since it faults in pages of memory.
    pub(crate) sleepable: bool,
}

/// Offset of the saved context in the program's frame, for callbacks.
const CONTEXT: i16 = -8;
/// Offset of a word in the program's frame that is not 0 once a callback has ended the program
/// (`return` in a loop).
const RETURNED: i16 = -16;
/// Offset of the slot with the scratch area's address.
const SCRATCH: i16 = -24;
/// Size in bytes of these three words.
const FIXED: i32 = 24;
/// Limit on the bytes of stack that values take. The stack has 512 bytes, and callbacks' frames
/// need some, too.
const STACK: i32 = 416;
/// Stack in bytes that a program and its active callbacks share: `MAX_BPF_STACK` of
/// `linux/filter.h`.
const WHOLE_STACK: u32 = 512;
/// Unit in bytes of a function's share of the stack, and its least share (`round_up_stack_depth` of
/// `kernel/bpf/verifier.c`; 32 before Linux 6.8).
const FRAME_STEP: u32 = 16;
/// Limit on the functions active at once: `MAX_CALL_FRAMES` of `linux/bpf_verifier.h`.
const MAX_FRAMES: u32 = 8;
/// Limit in bytes on a value on the stack.
const ON_STACK: u32 = 64;

/// Location of a saved number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SavedNumber {
    Reg(Reg),
    Slot(i16),
}

/// Way in which `break` and `continue` leave the body of a loop.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Jump to a label.
    Labels { leave: Label, next: Label },
    /// Return from the callback.
    Callback,
}

/// Needs of a program, known only once it has been emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Needs {
    scratch: bool,
    /// More scratch memory than fits in a per-CPU map.
    large_scratch: bool,
    callbacks: bool,
    /// Addresses of variables.
    addresses: bool,
}

pub(crate) struct Emitter<'a> {
    inputs: &'a Inputs<'a>,
    tables: &'a Tables,
    context: &'a Context,
    body: &'a Body,
    name: &'a str,
    asm: Asm,
    /// Register with the address of the program's frame.
    frame: Reg,
    /// Flags of r7 to r9 that are taken.
    taken: [bool; 3],
    used: i32,
    scratch_used: u32,
    scratch_most: u32,
    vars: Vec<MemoryRef>,
    subs: Vec<Sub>,
    turns: Vec<Turn>,
    end: Label,
    /// Number of callbacks around the current place.
    callbacks: u32,
    /// Greatest number of stack bytes used, and greatest nesting of callbacks.
    deepest: (i32, u32),
    /// True if a callback contains a `return`.
    returns: bool,
    needs: Needs,
    needed: Needs,
    /// Length of all callbacks, in slots.
    subs_slots: u32,
    /// Reason why there is no program.
    failed: Option<EmitError>,
    failures: &'a mut Failures,
    /// Offset of the program's mark in the map of hits, if marks are wanted.
    mark: Option<u32>,
    /// Part of the script that is being emitted.
    at: Span,
    /// Offsets of context words that are known not to be 0, each with its slot in the frame.
    present: Vec<(u32, i16)>,
    /// True if the program may sleep, since it faults in pages of memory.
    sleepable: bool,
    /// True if the kernel holds a lock while it calls this code, so that it must not sleep.
    locked: bool,
    /// Base of the event being written, if its values are only printed. Bytes after a string's NUL
    /// are then left unwritten.
    shown: Option<Base>,
}

/// Reason why a program can't be emitted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EmitError {
    /// Invalid code of the program or of a callback.
    #[error(transparent)]
    Code(#[from] AsmError),
    /// Computation whose values do not fit on the stack.
    #[error(
        "this needs more than the {WHOLE_STACK} bytes of stack that the kernel gives a program"
    )]
    Stack(Span),
    /// Loops nested too deep.
    #[error("loops can be nested {} deep, and these are deeper", MAX_FRAMES - 1)]
    Nesting(Span),
    /// Too many loops: a program has at most 256 functions (`BPF_MAX_SUBPROGS` of
    /// `linux/bpf_verifier.h`).
    #[error("it has more than {MAX_SUBS} loops")]
    Loops,
    /// Mistake of the compiler.
    #[error(transparent)]
    Internal(#[from] InternalError),
}

/// Limit on the callbacks of a program.
const MAX_SUBS: usize = 255;

/// Registers that calls preserve.
const PRESERVED_REGISTERS: [Reg; 3] = [R7, R8, R9];

/// Emits a program. It is emitted again with the needs found by the previous attempt, until these
/// no longer change.
/// ```text
/// needs = nothing
/// repeat: emit the program with needs; stop if it needed no more; needs = what it needed
/// shorten the code; drop callbacks that no code refers to
/// ```
pub(crate) fn emit(
    (inputs, tables): (&Inputs<'_>, &Tables),
    context: &Context,
    body: &Body,
    (name, mark): (&str, Option<u32>),
    failures: &mut Failures,
) -> Result<EmittedProgram, EmitError> {
    let mut needs = Needs::default();
    loop {
        let mut emitter = Emitter::new((inputs, tables), context, body, name, needs, failures);
        emitter.mark = mark;
        emitter.program();
        if let Some(error) = emitter.failed {
            return Err(error);
        }
        if emitter.needed != needs {
            needs = emitter.needed;
            continue;
        }
        let (scratch, sleepable) = (emitter.scratch_most, emitter.sleepable);
        let code = emitter.asm.finish_optimized()?;
        let subs = referenced(&code, emitter.subs);
        return Ok(EmittedProgram {
            code,
            subs,
            scratch,
            sleepable,
        });
    }
}

impl<'a> Emitter<'a> {
    fn new(
        (inputs, tables): (&'a Inputs<'a>, &'a Tables),
        context: &'a Context,
        body: &'a Body,
        name: &'a str,
        needs: Needs,
        failures: &'a mut Failures,
    ) -> Self {
        let mut asm = Asm::new();
        let end = asm.label("end");
        Self {
            inputs,
            tables,
            context,
            body,
            name,
            asm,
            frame: R10,
            taken: [false; 3],
            used: FIXED,
            scratch_used: scratch::HEAD,
            scratch_most: 0,
            vars: Vec::new(),
            subs: Vec::new(),
            turns: Vec::new(),
            end,
            callbacks: 0,
            deepest: (FIXED, 0),
            returns: false,
            needs,
            needed: needs,
            subs_slots: 0,
            failed: None,
            failures,
            mark: None,
            at: Span::default(),
            present: Vec::new(),
            sleepable: false,
            locked: false,
            shown: None,
        }
    }

    /// Emits the whole program.
    /// ```text
    /// r6 = context; save it in the frame, if there are callbacks
    /// leave if this is another process, or the end of an iteration
    /// mark the program as hit, if marks are wanted
    /// take a scratch area, or go to busy
    /// set all variables to 0
    /// the body
    /// end: give the scratch area back; return 0
    /// busy: count a lost hit; return 0
    /// ```
    fn program(&mut self) {
        self.asm.mov(R6, Reg::R1);
        if self.needs.callbacks {
            self.asm
                .store(Size::DW, R10.at(CONTEXT), R6)
                .store(Size::DW, R10.at(RETURNED), 0);
        }
        self.pid_filter();
        self.end_of_iteration();
        self.mark_hit();
        let busy = self.asm.label("busy");
        if self.needs.scratch {
            self.take_scratch(busy);
        }
        self.place_vars();
        let body = self.body;
        self.stmts(&body.stmts);
        let end = self.end;
        self.asm.bind(end);
        if self.needs.scratch {
            self.give_scratch();
        }
        self.asm.mov(R0, 0).exit();
        self.asm.bind(busy);
        if self.needs.scratch {
            self.count(offset!(LostCounters, no_scratch));
        }
        self.asm.mov(R0, 0).exit();
    }

    /// Gives each variable its place. Numbers start as 0, because the verifier must see a write to
    /// every word before a loop may read it.
    fn place_vars(&mut self) {
        for var in &self.body.vars {
            let size = if var.ty.is_scalar() { 8 } else { var.ty.size() };
            // The first dozen or so numbers are on the stack; temporary values need the rest.
            let place = if size <= 8 && self.used < STACK / 2 {
                self.stack(8)
            } else {
                self.scratch_mem(size)
            };
            if var.ty.is_scalar() {
                // Only the program itself accesses this slot.
                if place.base == Base::Frame && !self.needs.callbacks && !self.needs.addresses {
                    self.asm.mark_local_slot(place.off as i16);
                }
                self.store(place, Size::DW, 0);
            }
            self.vars.push(place);
        }
    }

    /// Returns true if there is no program, so that emitting more of it is useless.
    fn is_full(&self) -> bool {
        self.failed.is_some() || self.asm.is_full()
    }

    /// Records why there is no program; the first reason is kept.
    fn fail(&mut self, error: EmitError) {
        self.failed.get_or_insert(error);
    }

    /// Records a state that an earlier pass has ruled out. There is no program then, so the code
    /// emitted from here on does not matter.
    #[track_caller]
    fn impossible(&mut self, what: &'static str) {
        self.fail(InternalError::new(what, self.at).into());
    }

    /// Runs `run`, and then frees the memory taken meanwhile.
    fn temporary<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (used, scratch) = (self.used, self.scratch_used);
        let done = run(self);
        (self.used, self.scratch_used) = (used, scratch);
        done
    }

    /// Returns true if one or two instructions load the value, without a call and without any
    /// register but the target.
    fn is_simple(&self, ex: &Expr) -> bool {
        match &ex.kind {
            super::hir::ExprKind::Int(_) => true,
            super::hir::ExprKind::Var(_) => ex.ty.is_scalar(),
            super::hir::ExprKind::Ctx { .. } => self.callbacks == 0,
            _ => false,
        }
    }
}

/// Returns the callbacks still referred to. The code that would call the others was left out.
fn referenced(code: &Code, mut subs: Vec<Sub>) -> Vec<Sub> {
    let names = |code: &Code| -> Vec<String> {
        code.lines()
            .iter()
            .filter_map(|line| line.reference.as_ref())
            .map(|it| it.symbol().to_owned())
            .collect()
    };
    let mut wanted = names(code);
    let mut kept = Vec::new();
    // Callbacks called by callbacks come behind them, in no particular order.
    while let Some(name) = wanted.pop() {
        if let Some(index) = subs.iter().position(|sub| sub.name == name) {
            let sub = subs.remove(index);
            wanted.extend(names(&sub.code));
            kept.push(sub);
        }
    }
    kept
}
