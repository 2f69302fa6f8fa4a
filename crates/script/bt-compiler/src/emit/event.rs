//! Events: a reservation in the ring buffer that values are written into.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Helper, JumpOp, Size};

use super::foreign::Foreign;
use super::place::MemoryRef;
use super::{Emitter, SavedNumber};
use crate::hir::Expr;
use crate::ty::{Space, U64};
use bpf_program::event::RING;
use bpf_program::offset;
use bt_abi::{ActionKind, EventHead, LostCounters};
use uapi::bpf::{RB_AVAIL_DATA, RB_FORCE_WAKEUP, RB_NO_WAKEUP};

/// Value on its way into an event.
enum EventValue<'e> {
    /// Value computed when it is written.
    Later(&'e Expr),
    /// Value computed already.
    Done(MemoryRef),
}

impl Emitter<'_> {
    /// Sends an event with the values of `args`.
    /// ```text
    /// compute those arguments that have blocks, and all to their left    # no loop and no exit after reserve
    /// event = reserve(RING, size), or count a lost event
    /// write the head, then each argument to its field
    /// submit(event)
    /// ```
    pub(super) fn event(&mut self, number: usize, args: &[Expr]) {
        // Loops and statements can't stand between reserve and submit. Arguments to their left keep
        // their order.
        let early = args
            .iter()
            .rposition(Expr::is_complex)
            .map_or(0, |last| last + 1);
        let ready: Vec<EventValue<'_>> = args
            .iter()
            .enumerate()
            .map(|(index, arg)| self.make_ready(arg, index < early))
            .collect();
        let tables = self.tables;
        let Some(action) = tables.actions.get(number) else {
            self.impossible("an event that nobody has declared");
            return;
        };
        let shown = matches!(
            action.kind,
            ActionKind::Printf { .. }
                | ActionKind::PrintValue
                | ActionKind::Cat { .. }
                | ActionKind::System { .. }
        );
        self.send(number, |emitter, event| {
            emitter.shown = shown.then_some(event.base);
            for ((field, arg), ready) in action.fields.iter().zip(args).zip(&ready) {
                let to = event.at(field.offset);
                match ready {
                    EventValue::Later(ex) => {
                        emitter.temporary(|emitter| emitter.write(ex, &arg.ty, to));
                    }
                    EventValue::Done(place) => emitter.copy(to, *place, arg.ty.size()),
                }
            }
            emitter.shown = None;
        });
    }

    fn make_ready<'e>(&mut self, arg: &'e Expr, early: bool) -> EventValue<'e> {
        if !early || arg.constant().is_some() {
            return EventValue::Later(arg);
        }
        let place = self.mem(Self::room(&arg.ty));
        self.write(arg, &arg.ty, place);
        EventValue::Done(place)
    }

    /// Reserves an event, calls `write` to fill it, and sends it.
    fn send(&mut self, number: usize, write: impl FnOnce(&mut Self, MemoryRef)) {
        let (full, done) = (self.asm.label("full"), self.asm.label("sent"));
        let size = self.tables.actions[number].size;
        self.asm
            .comment("room in the ring")
            .load_map(R1, RING)
            .mov(R2, size.cast_signed())
            .mov(R3, 0);
        self.asm
            .call(Helper::RINGBUF_RESERVE)
            .jump_if(R0, JumpOp::Eq, 0, full);
        let saved = self.save();
        let event = MemoryRef {
            base: Self::as_base(saved),
            off: 0,
        };
        self.asm.call(Helper::KTIME_GET_NS);
        self.store(event.part(offset!(EventHead, time)), Size::DW, R0);
        self.asm.call(Helper::GET_SMP_PROCESSOR_ID);
        self.store(event.part(offset!(EventHead, cpu)), Size::W, R0);
        self.store(
            event.part(offset!(EventHead, action)),
            Size::W,
            number as i32,
        );
        write(self, event);
        let ends = matches!(self.tables.actions[number].kind, ActionKind::Exit);
        self.submit(saved, ends);
        self.release(saved);
        self.asm.jump(done).bind(full);
        self.count(offset!(LostCounters, ring_full));
        self.asm.bind(done);
    }

    /// Submits an event. The reader polls the ring many times a second. So it is woken only when a
    /// quarter of the ring is full, or, with `at_once`, when the script ends: other probes go on
    /// until the reader knows that.
    fn submit(&mut self, event: SavedNumber, at_once: bool) {
        let send = self.asm.label("send");
        if at_once {
            self.reload(event, R1);
            self.asm
                .mov(R2, RB_FORCE_WAKEUP.cast_signed())
                .call(Helper::RINGBUF_SUBMIT);
            return;
        }
        let quarter = (self.inputs.config.ring_bytes / 4).cast_signed();
        self.asm
            .comment("is the reader late?")
            .load_map(R1, RING)
            .mov(R2, RB_AVAIL_DATA.cast_signed())
            .call(Helper::RINGBUF_QUERY);
        self.reload(event, R1);
        self.asm
            .mov(R2, RB_NO_WAKEUP.cast_signed())
            .jump_if(R0, JumpOp::Lt, quarter, send);
        self.asm
            .mov(R2, RB_FORCE_WAKEUP.cast_signed())
            .bind(send)
            .call(Helper::RINGBUF_SUBMIT);
    }

    /// Emits `join(argv)`: the strings of a null-terminated array of pointers, up to the number
    /// that the event has room for.
    /// ```text
    /// list = argv; event = reserve(RING, size)
    /// for each string of the event:
    ///     string = ""; pointer = 0
    ///     if list: pointer = read(list + 8 * index)
    ///     if pointer == 0: list = 0              # the end: nothing behind it is read
    ///     else: string = read_str(pointer)
    /// submit(event)
    /// ```
    pub(super) fn join(&mut self, number: usize, argv: &Expr, space: Space) {
        let Some(bt_abi::ValueType::Array { element, count }) = self
            .tables
            .actions
            .get(number)
            .and_then(|action| action.fields.first())
            .map(|field| &field.ty)
        else {
            self.impossible("join without its array of strings");
            return;
        };
        let (size, count) = (element.size(), *count);
        self.scalar(argv);
        let list = self.stack(8);
        self.store(list, Size::DW, R0);
        let first = self.tables.actions[number].fields[0].offset;
        self.send(number, |emitter, event| {
            let pointer = emitter.stack(8);
            for index in 0..count {
                let to = event.at(first + index * size);
                let end = emitter.asm.label("no_more");
                emitter.store(to, Size::DW, 0);
                emitter.store(pointer, Size::DW, 0);
                emitter.load(list, &U64, R3);
                emitter
                    .asm
                    .jump_if(R3, JumpOp::Eq, 0, end)
                    .add(R3, (index * 8).cast_signed());
                emitter.address(pointer, R1);
                emitter.asm.mov(R2, 8);
                emitter.read(space, false);
                emitter.load(pointer, &U64, R3);
                let next = emitter.asm.label("string");
                // The list ends here: no later string is read.
                emitter.asm.jump_if(R3, JumpOp::Ne, 0, next);
                emitter.store(list, Size::DW, 0);
                emitter.asm.jump(end).bind(next);
                let addr = SavedNumber::Slot(pointer.off as i16);
                let from = Foreign {
                    addr,
                    space,
                    text: true,
                    to,
                    room: size,
                    limit: None,
                };
                emitter.read_text(&from, size >= emitter.inputs.config.max_strlen);
                emitter.asm.bind(end);
            }
        });
    }
}
