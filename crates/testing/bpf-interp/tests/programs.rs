//! Tests of the effects of programs, and of their faults.
#![expect(
    clippy::unwrap_used,
    reason = "a test that is not set up as it should be fails"
)]

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R7, R10};
use bpf_insn::{AluOp, Asm, AtomicOp, Code, Helper, JumpOp, MapDef, MapKind, Size, Width};
use bpf_interp::{Fault, Machine, Program};

fn made(build: impl for<'a> FnOnce(&'a mut Asm) -> &'a mut Asm) -> Code {
    let mut asm = Asm::new();
    build(&mut asm);
    asm.exit();
    asm.finish().unwrap()
}

fn run_on(
    machine: &mut Machine,
    build: impl for<'a> FnOnce(&'a mut Asm) -> &'a mut Asm,
) -> Result<u64, Fault> {
    machine.run(&Program::new("test", &made(build)), &[7; 16])
}

fn machine(maps: &[MapDef]) -> Machine {
    Machine::new(maps).unwrap()
}

#[track_caller]
fn gives(expected: u64, build: impl for<'a> FnOnce(&'a mut Asm) -> &'a mut Asm) {
    assert_eq!(run_on(&mut machine(&[]), build), Ok(expected));
}

#[track_caller]
fn faults(maps: &[MapDef], expected: &str, build: impl for<'a> FnOnce(&'a mut Asm) -> &'a mut Asm) {
    let fault = run_on(&mut machine(maps), build).unwrap_err().to_string();
    assert!(fault.contains(expected), "{fault}");
}

fn hash(kind: MapKind, entries: u32) -> MapDef {
    MapDef::new("m", kind, 8, 8, entries)
}

/// Reserves a record of the ring in r0.
fn reserve(asm: &mut Asm, bytes: i32) -> &mut Asm {
    asm.load_map(R1, "r")
        .mov(R2, bytes)
        .mov(R3, 0)
        .call(Helper::RINGBUF_RESERVE)
}

/// Reads a string: r6 = its length, r0 = the target word, which was all ones before.
fn read(asm: &mut Asm, address: i32, size: i32) -> &mut Asm {
    asm.store(Size::DW, R10.at(-8), -1)
        .mov(R1, R10)
        .add(R1, -8)
        .mov(R2, size)
        .mov(R3, address);
    asm.call(Helper::PROBE_READ_USER_STR)
        .mov(R6, R0)
        .load(Size::DW, R0, R10.at(-8))
}

/// Puts a key and a value on the stack, and their addresses into the arguments of an update.
fn pair(asm: &mut Asm, key: i32, value: i32) {
    asm.store(Size::DW, R10.at(-8), key)
        .store(Size::DW, R10.at(-16), value);
    asm.load_map(R1, "m")
        .mov(R2, R10)
        .add(R2, -8)
        .mov(R3, R10)
        .add(R3, -16)
        .mov(R4, 0);
}

#[test]
fn arithmetic_is_that_of_the_standard() {
    gives(0, |asm| asm.mov(R0, 7).mov(R1, 0).alu(AluOp::Div, R0, R1));
    gives(7, |asm| asm.mov(R0, 7).mov(R1, 0).alu(AluOp::Mod, R0, R1));
    gives(1 << 63, |asm| {
        asm.mov(R0, 1).mov(R1, 127).alu(AluOp::Lsh, R0, R1)
    });
    gives(0xffff_ffff, |asm| asm.mov32(R0, -1));
    gives(u64::MAX, |asm| asm.mov(R0, -2).alu(AluOp::Arsh, R0, 1));
}

#[test]
fn unwritten_memory_is_not_read() {
    faults(&[], "R3 is read and holds nothing", |asm| asm.mov(R0, R3));
    faults(&[], "R1 is read", |asm| {
        asm.call(Helper::KTIME_GET_NS).mov(R0, R1)
    });
    faults(&[], "byte -8 of the stack is read before", |asm| {
        asm.load(Size::DW, R0, R10.at(-8))
    });
    faults(&[], "byte -4 of the stack", |asm| {
        asm.store(Size::W, R10.at(-8), 1)
            .load(Size::DW, R0, R10.at(-8))
    });
    faults(
        &[hash(MapKind::Hash, 1)],
        "test at instruction 4 `call 0x1`",
        |asm| {
            asm.load_map(R1, "m")
                .mov(R2, R10)
                .add(R2, -8)
                .call(Helper::MAP_LOOKUP_ELEM)
        },
    );
}

#[test]
fn accesses_stay_within_what_a_pointer_points_to() {
    faults(&[], "byte 512 of Stack(0), which has 512", |asm| {
        asm.store(Size::B, R10.at(0), 1).mov(R0, 0)
    });
    faults(&[], "byte -8 of Stack(0)", |asm| {
        asm.store(Size::DW, R10.at(-520), 1)
    });
    faults(&[], "not aligned", |asm| {
        asm.store(Size::DW, R10.at(-12), 1)
    });
    faults(&[], "byte 16 of Context", |asm| {
        asm.load(Size::B, R0, R1.at(16))
    });
    faults(&[], "not to be written", |asm| {
        asm.store(Size::B, R1.at(0), 1)
    });
    faults(&[], "no memory of the program's", |asm| {
        asm.mov(R1, 0).load(Size::DW, R0, R1.at(0))
    });
    gives(0x0707, |asm| asm.load(Size::H, R0, R1.at(14)));
    let array = MapDef::new("a", MapKind::Array, 4, 8, 1);
    faults(
        std::slice::from_ref(&array),
        "byte 8 of Value(\"a\")",
        |asm| {
            asm.load_data(R1, "a", 0)
                .store(Size::DW, R1.at(8), 1)
                .mov(R0, 0)
        },
    );
}

#[test]
fn records_are_submitted_once() {
    let ring = [MapDef::ring_buffer("r", 4096)];
    let mut machine = machine(&ring);
    let sent = run_on(&mut machine, |asm| {
        reserve(asm, 8);
        asm.mov(R6, R0)
            .store(Size::DW, R6.at(0), 5)
            .mov(R1, R6)
            .mov(R2, 0)
            .call(Helper::RINGBUF_SUBMIT);
        asm.load_map(R1, "r").mov(R2, 0).call(Helper::RINGBUF_QUERY)
    });
    assert_eq!(sent, Ok(16));
    assert_eq!(machine.records("r"), [5_u64.to_le_bytes()]);
    faults(&ring, "neither submitted nor discarded", |asm| {
        reserve(asm, 8)
    });
    faults(&ring, "is gone", |asm| {
        reserve(asm, 8);
        asm.mov(R6, R0)
            .mov(R1, R6)
            .mov(R2, 0)
            .call(Helper::RINGBUF_DISCARD)
            .store(Size::DW, R6.at(0), 1)
    });
    // A record larger than the ring gets no room.
    assert_eq!(run_on(&mut machine, |asm| reserve(asm, 4096)), Ok(0));
}

#[test]
fn maps_have_room_for_what_they_were_made_for() {
    let put = |machine: &mut Machine, key, value| {
        run_on(machine, |asm| {
            pair(asm, key, value);
            asm.call(Helper::MAP_UPDATE_ELEM)
        })
        .unwrap()
        .cast_signed()
    };
    let mut full = machine(&[hash(MapKind::Hash, 2)]);
    assert_eq!(
        [
            put(&mut full, 1, 10),
            put(&mut full, 2, 20),
            put(&mut full, 3, 30),
            put(&mut full, 1, 11)
        ],
        [0, 0, -7, 0]
    );
    assert_eq!(
        full.values("m", &1_u64.to_le_bytes()),
        [11_u64.to_le_bytes()]
    );
    let mut lru = machine(&[hash(MapKind::LruHash, 2)]);
    assert_eq!(
        [
            put(&mut lru, 1, 10),
            put(&mut lru, 2, 20),
            put(&mut lru, 1, 11),
            put(&mut lru, 3, 30)
        ],
        [0; 4]
    );
    assert_eq!(lru.keys("m"), [1_u64.to_le_bytes(), 3_u64.to_le_bytes()]);
    let mut cpus = Machine::with_cpus(&[hash(MapKind::PercpuHash, 2)], 2).unwrap();
    put(&mut cpus, 1, 10);
    cpus.cpu = 1;
    put(&mut cpus, 1, 12);
    assert_eq!(
        cpus.values("m", &1_u64.to_le_bytes()),
        [10_u64.to_le_bytes(), 12_u64.to_le_bytes()]
    );
    let refused = Machine::new(&[MapDef::new("q", MapKind::Queue, 0, 8, 4)])
        .map(|_| ())
        .unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("no map of kind Queue here: q"),
        "{refused}"
    );
}

#[test]
fn atomic_operations_give_what_was_there() {
    let with = |op, extra: for<'a> fn(&'a mut Asm) -> &'a mut Asm| {
        made(|asm| {
            asm.store(Size::DW, R10.at(-8), 5).mov(R1, 3).mov(R0, 5);
            asm.atomic(op, Width::W64, R10.at(-8), R1);
            extra(asm)
        })
    };
    let run = |code: &Code| machine(&[]).run(&Program::new("test", code), &[]);
    let word: for<'a> fn(&'a mut Asm) -> &'a mut Asm = |asm| asm.load(Size::DW, R0, R10.at(-8));
    let old: for<'a> fn(&'a mut Asm) -> &'a mut Asm = |asm| asm.mov(R0, R1);
    assert_eq!(run(&with(AtomicOp::Add, word)), Ok(8));
    assert_eq!(run(&with(AtomicOp::FetchAdd, old)), Ok(5));
    assert_eq!(run(&with(AtomicOp::Xchg, word)), Ok(3));
    assert_eq!(run(&with(AtomicOp::CmpXchg, |asm| asm)), Ok(5));
}

#[test]
fn callbacks_have_frames_of_their_own() {
    // Adds its number to a word, and stops at the fifth turn.
    let mut asm = Asm::new();
    let on = asm.label("on");
    asm.load(Size::DW, R3, R2.at(0))
        .add(R3, R1)
        .store(Size::DW, R2.at(0), R3)
        .mov(R0, 0);
    asm.jump_if(R1, JumpOp::Lt, 4, on)
        .mov(R0, 1)
        .bind(on)
        .exit();
    let turn = asm.finish().unwrap();
    let main = made(|asm| {
        asm.store(Size::DW, R10.at(-8), 0)
            .mov(R1, 100)
            .load_function(R2, "turn")
            .mov(R3, R10)
            .add(R3, -8);
        asm.mov(R4, 0)
            .call(Helper::LOOP)
            .mov(R7, R0)
            .load(Size::DW, R0, R10.at(-8))
            .lsh(R0, 8)
            .add(R0, R7)
    });
    let program = Program::new("main", &main).with_subprogram("turn", &turn);
    assert_eq!(
        machine(&[]).run(&program, &[]),
        Ok((1 + 2 + 3 + 4) << 8 | 5)
    );
}

#[test]
fn a_run_ends() {
    let mut asm = Asm::new();
    let again = asm.label("again");
    asm.mov(R0, 0).bind(again).jump(again);
    let code = asm.finish().unwrap();
    let mut machine = machine(&[]);
    machine.steps = 1000;
    let fault = machine
        .run(&Program::new("main", &code), &[])
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("1000 instructions without an end"),
        "{fault}"
    );
    faults(&[], "has no helper bpf_skb_store_bytes", |asm| {
        asm.call(Helper::SKB_STORE_BYTES)
    });
}

#[test]
fn names_and_texts_leave_what_is_behind_their_end() {
    let mut machine = machine(&[]);
    machine.put(0x1000, b"text\0behind");
    machine.put_away(0x8000, b"away\0");
    let word = |bytes: &[u8; 8]| Ok(u64::from_le_bytes(*bytes));
    assert_eq!(
        run_on(&mut machine, |asm| read(asm, 0x1000, 8)),
        word(b"text\0\xff\xff\xff")
    );
    assert_eq!(
        run_on(&mut machine, |asm| read(asm, 0x1000, 3)),
        word(b"te\0\xff\xff\xff\xff\xff")
    );
    assert_eq!(run_on(&mut machine, |asm| read(asm, 0x8000, 8)), Ok(0));
    let code = made(|asm| {
        asm.mov(R1, R10)
            .add(R1, -8)
            .mov(R2, 1)
            .mov(R3, 0x8000)
            .call(Helper::COPY_FROM_USER);
        read(asm, 0x8000, 8)
    });
    let refused = machine
        .run(&Program::new("test", &code), &[])
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("waits for memory where it may not"),
        "{refused}"
    );
    assert_eq!(
        machine.run(&Program::new("test", &code).sleepable(true), &[]),
        word(b"away\0\xff\xff\xff")
    );
    let name = run_on(&mut machine, |asm| {
        asm.store(Size::DW, R10.at(-16), -1)
            .store(Size::DW, R10.at(-8), -1)
            .mov(R1, R10)
            .add(R1, -16)
            .mov(R2, 16);
        asm.call(Helper::GET_CURRENT_COMM)
            .load(Size::DW, R0, R10.at(-8))
    });
    assert_eq!(name, Ok(u64::MAX));
}

#[test]
fn an_event_is_copied_into_a_ring_with_room() {
    let mut machine = machine(&[MapDef::ring_buffer("r", 64)]);
    let output = |machine: &mut Machine| {
        run_on(machine, |asm| {
            asm.store(Size::DW, R10.at(-8), 5)
                .load_map(R1, "r")
                .mov(R2, R10)
                .add(R2, -8)
                .mov(R3, 8)
                .mov(R4, 0)
                .call(Helper::RINGBUF_OUTPUT)
        })
    };
    // Each has a header of 8 bytes.
    assert_eq!([0; 4].map(|_| output(&mut machine)), [0; 4].map(Ok));
    let again = 11_u64.wrapping_neg();
    assert_eq!(output(&mut machine), Ok(again));
    assert_eq!(machine.records("r"), [5_u64.to_le_bytes(); 4]);
    assert_eq!(output(&mut machine), Ok(0));
}
