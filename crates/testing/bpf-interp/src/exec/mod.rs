//! Registers, frames, instructions.

mod access;
mod frame;

use bpf_insn::asm::{Line, Reference};
use bpf_insn::{AluOp, Callee, Code, Imm64, Insn, Reg, Src, SxSize, Width};

use crate::alu;
use crate::fault::{Fault, Place, Wrong};
use crate::machine::Machine;
use crate::memory::{STACK_BYTES, What};

pub(crate) use frame::Frame;

/// Maximum number of nested calls (`MAX_CALL_FRAMES` of `linux/bpf_verifier.h`).
const MAX_FRAMES: usize = 8;

/// A program and its subprograms.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    functions: Vec<(&'a str, &'a Code)>,
    sleepable: bool,
}

impl<'a> Program<'a> {
    /// Creates a program without subprograms.
    pub fn new(name: &'a str, code: &'a Code) -> Self {
        Self {
            functions: vec![(name, code)],
            sleepable: false,
        }
    }

    /// Adds a subprogram.
    #[must_use]
    pub fn with_subprogram(mut self, name: &'a str, code: &'a Code) -> Self {
        self.functions.push((name, code));
        self
    }

    /// Sets whether it may wait for memory.
    #[must_use]
    pub fn sleepable(self, sleepable: bool) -> Self {
        Self { sleepable, ..self }
    }
}

/// A function that is ready to run.
#[derive(Clone, Debug)]
struct Function<'a> {
    name: &'a str,
    lines: &'a [Line],
    /// Index of the line that begins at each slot.
    at: Vec<Option<u32>>,
    handle: u64,
}

/// A run of a program.
pub(crate) struct Run<'m, 'a> {
    pub(crate) machine: &'m mut Machine,
    functions: Vec<Function<'a>>,
    pub(crate) context: u64,
    /// Stacks of the frames, by depth.
    stacks: Vec<u64>,
    depth: usize,
    steps: u64,
    pub(crate) sleepable: bool,
    /// Number of active helpers that hold a lock.
    pub(crate) locks: usize,
}

/// Continuation after an instruction.
enum Next {
    Line(usize),
    Exit(u64),
}

impl<'m, 'a> Run<'m, 'a> {
    pub(crate) fn new(machine: &'m mut Machine, program: &Program<'a>, context: &[u8]) -> Self {
        let mut functions = Vec::new();
        for (index, (name, code)) in program.functions.iter().enumerate() {
            let mut at = vec![None; code.slots() as usize];
            for (number, line) in code.lines().iter().enumerate() {
                at[line.slot as usize] = Some(number as u32);
            }
            let handle = machine.memory.add(What::Function(index), Vec::new());
            functions.push(Function {
                name,
                lines: code.lines(),
                at,
                handle,
            });
        }
        let context = machine.memory.add(What::Context, context.to_vec());
        let stack = |depth| {
            machine
                .memory
                .add(What::Stack(depth), vec![0; STACK_BYTES as usize])
        };
        let stacks = (0..MAX_FRAMES).map(stack).collect();
        let sleepable = program.sleepable;
        Self {
            machine,
            functions,
            context,
            stacks,
            depth: 0,
            steps: 0,
            sleepable,
            locks: 0,
        }
    }

    /// Runs the program from its beginning.
    pub(crate) fn program(&mut self) -> Result<u64, Fault> {
        let context = self.context;
        let result = self.call(0, &[context]);
        let open = self.machine.memory.open_record().map(str::to_owned);
        for address in self
            .stacks
            .iter()
            .chain([&self.context])
            .chain(self.functions.iter().map(|it| &it.handle))
        {
            self.machine.memory.end(*address);
        }
        let value = result?;
        match open {
            None => Ok(value),
            Some(name) => {
                let place = Place {
                    function: self.functions[0].name.to_owned(),
                    ..Place::default()
                };
                Err(Fault {
                    place: Box::new(place),
                    wrong: Wrong::Unsubmitted(name),
                })
            }
        }
    }

    /// Runs a function in a new frame.
    pub(crate) fn call(&mut self, function: usize, args: &[u64]) -> Result<u64, Fault> {
        let mut frame = Frame {
            function,
            line: 0,
            registers: [None; 11],
        };
        if self.depth >= MAX_FRAMES {
            return Err(self.fault(&frame, Wrong::Depth(MAX_FRAMES)));
        }
        let stack = self.stacks[self.depth];
        self.machine.memory.renew(stack);
        self.depth += 1;
        for (register, arg) in frame.registers[1..].iter_mut().zip(args) {
            *register = Some(*arg);
        }
        frame.registers[10] = Some(stack + STACK_BYTES);
        let result = self.frame(&mut frame);
        self.depth -= 1;
        self.machine.memory.end(stack);
        result
    }

    fn frame(&mut self, frame: &mut Frame) -> Result<u64, Fault> {
        loop {
            self.steps += 1;
            if self.steps > self.machine.steps {
                return Err(self.fault(frame, Wrong::Endless(self.steps - 1)));
            }
            match self.step(frame)? {
                Next::Line(line) => frame.line = line,
                Next::Exit(value) => return Ok(value),
            }
        }
    }

    /// Returns the index of the function at an address.
    pub(crate) fn function_at(&self, address: u64) -> Result<usize, Wrong> {
        self.functions
            .iter()
            .position(|it| it.handle == address)
            .ok_or(Wrong::NotAFunction(address))
    }

    fn named(&self, name: &str) -> Result<usize, Wrong> {
        self.functions
            .iter()
            .position(|it| it.name == name)
            .ok_or_else(|| Wrong::Unknown(name.to_owned()))
    }

    /// Creates a fault at the current line of a frame.
    fn fault(&self, frame: &Frame, wrong: Wrong) -> Fault {
        let function = &self.functions[frame.function];
        let mut place = Place {
            function: function.name.to_owned(),
            ..Place::default()
        };
        if let Some(line) = function.lines.get(frame.line) {
            (place.slot, place.text, place.span) = (line.slot, line.insn.to_string(), line.span);
            let mut before = function.lines[..=frame.line].iter().rev();
            place.comment = before.find_map(|line| line.comment.clone());
        }
        Fault {
            place: Box::new(place),
            wrong,
        }
    }

    fn step(&mut self, frame: &mut Frame) -> Result<Next, Fault> {
        let lines = self.functions[frame.function].lines;
        let Some(line) = lines.get(frame.line) else {
            return Err(self.fault(frame, Wrong::Left(frame.line)));
        };
        let next = frame.line + 1;
        let done = match line.insn {
            Insn::Exit => frame.get(Reg::R0).map(Next::Exit),
            Insn::Jump { off } => self.jump(frame, line, i64::from(off)),
            Insn::JumpLong { off } => self.jump(frame, line, i64::from(off)),
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => match (frame.get(dst), frame.src(src)) {
                (Ok(left), Ok(right)) if alu::holds(op, width, left, right) => {
                    self.jump(frame, line, i64::from(off))
                }
                (Ok(_), Ok(_)) => Ok(Next::Line(next)),
                (Err(wrong), _) | (_, Err(wrong)) => Err(wrong),
            },
            Insn::Call(callee) => {
                return self
                    .call_insn(frame, line, callee)
                    .map(|()| Next::Line(next));
            }
            Insn::LoadImm64 { dst, imm } => self
                .constant(frame, line, dst, imm)
                .map(|()| Next::Line(next)),
            insn => self.plain(frame, insn).map(|()| Next::Line(next)),
        };
        done.map_err(|wrong| self.fault(frame, wrong))
    }

    fn jump(&self, frame: &Frame, line: &Line, off: i64) -> Result<Next, Wrong> {
        let slot = i64::from(line.slot) + 1 + off;
        let at = &self.functions[frame.function].at;
        let found = usize::try_from(slot)
            .ok()
            .and_then(|slot| at.get(slot).copied().flatten());
        found
            .map(|line| Next::Line(line as usize))
            .ok_or(Wrong::Target(slot))
    }

    /// Executes a call of a helper or subprogram. Its own faults are at this line, those of a
    /// called function at theirs.
    fn call_insn(&mut self, frame: &mut Frame, line: &Line, callee: Callee) -> Result<(), Fault> {
        let result = match (callee, &line.reference) {
            (Callee::Helper(helper), _) => {
                let args: Vec<Option<u64>> = frame.registers[1..=5].to_vec();
                match self.helper(helper, &args) {
                    Ok(value) => value,
                    Err(crate::helpers::Failed::Here(wrong)) => {
                        return Err(self.fault(frame, wrong));
                    }
                    Err(crate::helpers::Failed::There(fault)) => return Err(fault),
                }
            }
            (Callee::Subprogram(_), Some(Reference::Call(name))) => {
                let function = self.named(name).map_err(|wrong| self.fault(frame, wrong))?;
                let args: Vec<u64> = frame.registers[1..=5].iter().map_while(|it| *it).collect();
                self.call(function, &args)?
            }
            _ => return Err(self.fault(frame, Wrong::Instruction)),
        };
        frame.registers[1..=5].fill(None);
        frame.registers[0] = Some(result);
        Ok(())
    }

    fn constant(
        &mut self,
        frame: &mut Frame,
        line: &Line,
        dst: Reg,
        imm: Imm64,
    ) -> Result<(), Wrong> {
        let unknown = |name: &str| Wrong::Unknown(name.to_owned());
        let map = |name: &str| {
            self.machine
                .maps
                .iter()
                .find(|map| map.def.name == name)
                .ok_or_else(|| unknown(name))
        };
        let value = match (&line.reference, imm) {
            (None, Imm64::Value(value)) => value,
            (Some(Reference::Map(name)), _) => map(name)?.handle,
            (Some(Reference::Data(name)), Imm64::Value(off)) => {
                let first = map(name)?
                    .values(&0_u32.to_le_bytes())
                    .first()
                    .copied()
                    .ok_or_else(|| unknown(name))?;
                first + off
            }
            (Some(Reference::Function(name)), _) => self.functions[self.named(name)?].handle,
            _ => return Err(Wrong::Instruction),
        };
        frame.set(dst, value);
        Ok(())
    }

    /// Executes an instruction that neither jumps nor calls.
    fn plain(&mut self, frame: &mut Frame, insn: Insn) -> Result<(), Wrong> {
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let right = frame.src(src)?;
                let left = if op == AluOp::Mov { 0 } else { frame.get(dst)? };
                if let (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Src::Imm(by)) = (op, src) {
                    let bits = if width == Width::W64 { 64 } else { 32 };
                    if !(0..bits).contains(&by) {
                        return Err(Wrong::Shift(by));
                    }
                }
                frame.set(dst, alu::alu(op, width, left, right));
            }
            Insn::Neg { width, dst } => frame.set(dst, alu::neg(width, frame.get(dst)?)),
            Insn::MovSx { extend, dst, src } => {
                frame.set(dst, alu::extend(extend, frame.get(src)?));
            }
            Insn::Swap { order, bits, dst } => {
                frame.set(dst, alu::swap(order, bits, frame.get(dst)?));
            }
            Insn::Load { size, dst, addr } => {
                let value = self.load(frame.addr(addr)?, u64::from(size.bytes()))?;
                frame.set(dst, value);
            }
            Insn::LoadSx { size, dst, addr } => {
                let (bytes, bits) = match size {
                    SxSize::B => (1, 56),
                    SxSize::H => (2, 48),
                    SxSize::W => (4, 32),
                };
                let value = self.load(frame.addr(addr)?, bytes)?;
                frame.set(dst, ((value << bits).cast_signed() >> bits).cast_unsigned());
            }
            Insn::Store { size, addr, src } => {
                let (address, value) = (frame.addr(addr)?, frame.src(src)?);
                self.store(address, size, value)?;
            }
            Insn::Atomic {
                op,
                width,
                addr,
                src,
            } => self.atomic(frame, op, width, frame.addr(addr)?, src)?,
            _ => return Err(Wrong::Instruction),
        }
        Ok(())
    }
}
