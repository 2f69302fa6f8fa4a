//! The program of a probe that sends an event: it reserves room in the ring, writes the fields
//! there, and submits.
//!
//! Nothing is built elsewhere and copied: there is no limit but the ring's, and no memory that two
//! hits could share.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf_insn::{
    Addr, Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, MapDef, MapKind, Reg, Size, Width,
};
use uapi::bpf::{RB_AVAIL_DATA, RB_FORCE_WAKEUP, RB_NO_WAKEUP};
use usdt::args::ArgSpec;

use crate::emit::Emit as _;
use crate::operand;
use crate::payload::{FAULTS, FieldKind, Form, ID, Layout, PID_TGID, SMALL, TIME};
use crate::place::Place;
use crate::wire::in_instruction;

/// Name of the ring buffer.
pub const RING: &str = "events";
/// Name of the map that counts events that did not fit into the ring: a `u64` for each CPU.
pub const UNSENT: &str = "unsent";

/// Smallest page size of the machines that we run on.
const MIN_PAGE_BYTES: i32 = 4096;

/// Source of the number of the event that a program sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventId {
    /// The attach cookie of the place. Since Linux 5.15.
    Cookie,
    /// This number.
    Fixed(u32),
}

/// Source of a field's value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Argument of the probe; for a text field, a pointer to the text.
    Arg(ArgSpec),
    /// None: the place has no such argument, so the field is unreadable.
    Missing,
}

/// Returns the ring of `bytes` (a power of two, a multiple of the page size) and the counter of
/// events that did not fit.
pub fn maps(bytes: u32) -> Vec<MapDef> {
    vec![
        MapDef::ring_buffer(RING, bytes),
        MapDef::new(UNSENT, MapKind::PercpuArray, 4, 8, 1),
    ]
}

/// Conditions under which a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Setting {
    /// Source of the event's number.
    pub id: EventId,
    /// True if the program may wait for a page of the process's memory. If not, a string that the
    /// process itself has not looked at yet (a literal, most often) can't be read.
    pub sleepable: bool,
    /// Size of the ring, in bytes.
    pub ring_bytes: u32,
}

/// Makes the program for a place of a USDT probe. `sources` are in the layout's order.
pub fn program(layout: &Layout, sources: &[Source], setting: Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let full = asm.label("full");
    // r6: the registers. r7: the event. r8: the time. r9: a bit for each unreadable field.
    asm.comment("when")
        .mov(R6, R1)
        .call(Helper::KTIME_GET_NS)
        .mov(R8, R0);
    if let Some(small) = layout.small() {
        let too_small = asm.label("too_small");
        attempt(
            &mut asm,
            small,
            sources,
            setting,
            Exits {
                full,
                cut: Some(too_small),
            },
        );
        asm.bind(too_small)
            .comment("a text is longer: once more")
            .mov(R1, R7)
            .mov(R2, RB_NO_WAKEUP.cast_signed());
        asm.call(Helper::RINGBUF_DISCARD);
    }
    attempt(
        &mut asm,
        layout.whole(),
        sources,
        setting,
        Exits { full, cut: None },
    );
    asm.bind(full);
    count_lost(&mut asm);
    asm.finish()
}

/// Exits of an attempt to make an event.
#[derive(Clone, Copy)]
struct Exits {
    /// Exit if the ring is full.
    full: Label,
    /// Exit if a text does not fit and there is a larger form.
    cut: Option<Label>,
}

/// Makes an event in one of its forms and submits it.
fn attempt(asm: &mut Asm, form: &Form, sources: &[Source], setting: Setting, exits: Exits) {
    asm.comment("room in the ring")
        .load_map(R1, RING)
        .mov(R2, form.size.cast_signed())
        .mov(R3, 0);
    asm.call(Helper::RINGBUF_RESERVE)
        .jump_if(R0, JumpOp::Eq, 0, exits.full)
        .mov(R7, R0)
        .mov(R9, 0);
    asm.store(Size::DW, R7.at(TIME), R8);
    asm.comment("who")
        .call(Helper::GET_CURRENT_PID_TGID)
        .store(Size::DW, R7.at(PID_TGID), R0);
    event_id(asm, setting.id, if exits.cut.is_some() { SMALL } else { 0 });
    for (number, ((kind, offset), source)) in form.fields().zip(sources).enumerate() {
        field(
            asm,
            number as u32,
            (kind, R7.at(offset)),
            source,
            (setting.sleepable, exits.cut),
        );
    }
    asm.comment("what could not be read")
        .store(Size::W, R7.at(FAULTS), R9);
    submit(asm, R7, setting.ring_bytes);
    asm.mov(R0, 0).exit();
}

fn event_id(asm: &mut Asm, id: EventId, flag: u32) {
    let flag = flag.cast_signed();
    match id {
        EventId::Cookie => {
            asm.comment("which")
                .mov(R1, R6)
                .call(Helper::GET_ATTACH_COOKIE);
            if flag != 0 {
                asm.or(R0, flag);
            }
            asm.store(Size::W, R7.at(ID), R0);
        }
        EventId::Fixed(id) => {
            asm.comment("which")
                .store(Size::W, R7.at(ID), id.cast_signed() | flag);
        }
    }
}

/// Writes one field to its slot. A text's pointer first takes the place of its length.
fn field(
    asm: &mut Asm,
    number: u32,
    (kind, slot): (FieldKind, Addr),
    source: &Source,
    (sleepable, cut): (bool, Option<Label>),
) {
    let fault = (1_u32 << number).cast_signed();
    asm.comment(format!("field {number}"));
    let arg = match source {
        Source::Arg(arg) if arg.unreadable().is_none() => arg,
        Source::Arg(_) | Source::Missing => {
            asm.store(Size::DW, slot, 0).or(R9, fault);
            return;
        }
    };
    let (failed, done) = (asm.label("unreadable"), asm.label("next"));
    operand::store(asm, R6, arg, slot, failed);
    if let FieldKind::Text { capacity } = kind {
        let read = asm.label("read");
        read_text(asm, slot, capacity);
        if sleepable {
            asm.jump_if(R0, JumpOp::SGt, 0, read);
            fetch_pages(asm, slot);
            read_text(asm, slot, capacity);
        }
        asm.bind(read).store(Size::DW, slot, R0);
        if let Some(cut) = cut {
            // The text fills its room, including the end: it may be longer.
            asm.jump_if(R0, JumpOp::SGt, capacity.cast_signed(), cut);
        }
    }
    if operand::can_fail(arg) {
        asm.jump(done).bind(failed).or(R9, fault).bind(done);
    }
}

/// Reads the string that the slot points to, and puts its bytes behind the slot. r0 = its length
/// including the end, or an error.
fn read_text(asm: &mut Asm, slot: Addr, capacity: u32) {
    asm.load(Size::DW, R3, slot)
        .mov(R1, slot.base)
        .add(R1, i32::from(slot.off) + 8);
    asm.mov(R2, capacity.cast_signed() + 1)
        .call(Helper::PROBE_READ_USER_STR);
}

/// Makes the kernel bring in the page of the string that the slot points to, and the next page, by
/// copying a byte of each.
fn fetch_pages(asm: &mut Asm, slot: Addr) {
    asm.comment("the page is not there: wait for it")
        .mov(R1, R10)
        .add(R1, -8)
        .mov(R2, 1)
        .load(Size::DW, R3, slot);
    asm.call(Helper::COPY_FROM_USER);
    asm.mov(R1, R10)
        .add(R1, -8)
        .mov(R2, 1)
        .load(Size::DW, R3, slot)
        .or(R3, MIN_PAGE_BYTES - 1)
        .add(R3, 1);
    asm.call(Helper::COPY_FROM_USER);
}

/// Submits an event that is in the ring. r1 and r2 are the helper's arguments.
pub fn submit(asm: &mut Asm, event: Reg, ring_bytes: u32) {
    query(asm);
    asm.mov(R1, event);
    wake_if_late(asm, R2, ring_bytes);
    asm.call(Helper::RINGBUF_SUBMIT);
}

/// Copies an event into the ring. r0 is 0 if there was room.
pub fn output<T>(asm: &mut Asm, event: Place<T>, ring_bytes: u32) {
    query(asm);
    wake_if_late(asm, R4, ring_bytes);
    asm.load_map(R1, RING)
        .address(R2, event)
        .mov(R3, const { in_instruction(size_of::<T>()) });
    asm.call(Helper::RINGBUF_OUTPUT);
}

/// Sets r0 to the number of bytes that the reader has not read yet.
fn query(asm: &mut Asm) {
    asm.comment("is the reader late?")
        .load_map(R1, RING)
        .mov(R2, RB_AVAIL_DATA)
        .call(Helper::RINGBUF_QUERY);
}

/// Sets `flags` for r0 unread bytes. The reader polls the ring many times a second. It is woken
/// only if that may be too late, since a wake-up at each event costs the traced process more than
/// the event.
fn wake_if_late(asm: &mut Asm, flags: Reg, ring_bytes: u32) {
    asm.mov(flags, RB_NO_WAKEUP)
        .unless(R0, JumpOp::Lt, ring_bytes / 4, |asm| {
            _ = asm.mov(flags, RB_FORCE_WAKEUP);
        });
}

/// Adds one to this CPU's count of lost events, and returns. Uprobe programs are preemptible, so
/// two tasks on one CPU may race here; hence the atomic add. Interrupt handlers never run them.
pub fn count_lost(asm: &mut Asm) {
    let gone = asm.label("gone");
    asm.comment("the ring is full: count it")
        .store(Size::W, R10.at(-4), 0)
        .load_map(R1, UNSENT);
    asm.mov(R2, R10)
        .add(R2, -4)
        .call(Helper::MAP_LOOKUP_ELEM)
        .jump_if(R0, JumpOp::Eq, 0, gone);
    asm.mov(R1, 1)
        .atomic(AtomicOp::Add, Width::W64, R0.at(0), R1);
    asm.bind(gone).mov(R0, 0).exit();
}
