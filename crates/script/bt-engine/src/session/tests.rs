//! Hand-made scripts, on this kernel: a session does not depend on the compiler.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R7, R10};
use bpf_insn::{Asm, Helper, JumpOp, MapDef, MapKind, Size};
use bpf_program::event::RING;
use bpf_program::module::ProgramKind;
use bpf_program::{Module, ProgramDef, offset};
use bt_abi::failure::{FAILURES, FailureSlot};
use bt_abi::lost::{LOST, LostCounters};
use bt_abi::{
    Action, ActionKind, Aggregation, EventHead, Failure, FailureKind, Field, FormatPiece,
    FormatSpec, PrintTo, ScriptMap, ValueType,
};
use bt_lang::Span;
use host::{Capabilities, Capability};

use super::*;
use crate::Builder;
use crate::event::Event;
use crate::facts::Subject;
use bt_runtime::Cell;

const U64: ValueType = ValueType::Int {
    size: 8,
    signed: false,
};

/// Makes a program that sends an event of this action, whose one field is `value`.
fn sends(action: i32, value: i32) -> bpf_insn::Code {
    let mut asm = Asm::new();
    let full = asm.label("full");
    asm.call(Helper::KTIME_GET_NS)
        .mov(R6, R0)
        .load_map(R1, RING)
        .mov(R2, 24)
        .mov(R3, 0);
    asm.call(Helper::RINGBUF_RESERVE)
        .jump_if(R0, JumpOp::Eq, 0, full)
        .mov(R7, R0);
    asm.store(Size::DW, R7.at(offset!(EventHead, time)), R6)
        .store(Size::W, R7.at(offset!(EventHead, action)), action);
    asm.store(Size::W, R7.at(offset!(EventHead, cpu)), 0)
        .store(Size::DW, R7.at(16), value);
    asm.mov(R1, R7)
        .mov(R2, 0)
        .call(Helper::RINGBUF_SUBMIT)
        .bind(full)
        .mov(R0, 0)
        .exit();
    asm.finish().unwrap()
}

/// Makes a program that adds one to the only element of the map `m`.
fn counts() -> bpf_insn::Code {
    let mut asm = Asm::new();
    let new = asm.label("new");
    let done = asm.label("done");
    asm.store(Size::DW, R10.at(-8), 0)
        .load_map(R1, "m")
        .mov(R2, R10)
        .add(R2, -8)
        .call(Helper::MAP_LOOKUP_ELEM);
    asm.jump_if(R0, JumpOp::Eq, 0, new)
        .load(Size::DW, R1, R0.at(0))
        .add(R1, 1)
        .store(Size::DW, R0.at(0), R1)
        .jump(done);
    asm.bind(new)
        .store(Size::DW, R10.at(-16), 1)
        .load_map(R1, "m")
        .mov(R2, R10)
        .add(R2, -8)
        .mov(R3, R10)
        .add(R3, -16);
    asm.mov(bpf_insn::Reg::R4, 0)
        .call(Helper::MAP_UPDATE_ELEM)
        .bind(done)
        .mov(R0, 0)
        .exit();
    asm.finish().unwrap()
}

fn program(name: &str, kind: ProgramKind, code: bpf_insn::Code) -> ProgramDef {
    ProgramDef {
        name: name.into(),
        kind,
        target: None,
        sleepable: false,
        code,
        subprograms: Vec::new(),
    }
}

fn probe(program: usize, attach: Attach) -> ScriptProbe {
    ScriptProbe {
        program,
        attach,
        name: format!("probe {program}"),
        count: 1,
        span: Span::empty(0),
    }
}

fn action(kind: ActionKind) -> Action {
    let field = Field {
        name: None,
        offset: 16,
        ty: U64,
        bits: None,
    };
    Action {
        kind,
        fields: vec![field],
        size: 24,
        span: Span::empty(0),
        callers: Vec::new(),
    }
}

fn printf(text: &str) -> Action {
    let spec = FormatSpec {
        conversion: 'd',
        ..FormatSpec::default()
    };
    let format = vec![
        FormatPiece::Text(text.into()),
        FormatPiece::Value(spec),
        FormatPiece::Text("\n".into()),
    ];
    action(ActionKind::Printf {
        format,
        to: PrintTo::Output,
    })
}

/// Makes a script: `begin` prints 1, `interval:ms:20` counts and exits with 3, `end` prints 2.
fn script() -> Script {
    let raw = ProgramKind::RawTracepoint;
    let programs = vec![
        program("begin", raw, sends(0, 1)),
        program("tick", ProgramKind::PerfEvent, counts()),
        program("tock", ProgramKind::PerfEvent, sends(1, 3)),
        program("end", raw, sends(0, 2)),
    ];
    let maps = vec![
        MapDef::ring_buffer(RING, 1 << 16),
        MapDef::new(LOST, MapKind::Array, 4, size_of::<LostCounters>() as u32, 1),
        MapDef::new("m", MapKind::PercpuHash, 8, 8, 16),
    ];
    let every = Attach::Interval { nanos: 20_000_000 };
    let map = ScriptMap {
        name: "@ticks".into(),
        bpf_name: "m".into(),
        key: ValueType::None,
        key_size: 8,
        value: Aggregation::Count.into(),
        per_cpu: true,
        key_table: None,
    };
    Script {
        module: Module {
            maps,
            programs,
            ..Module::default()
        },
        probes: vec![
            probe(0, Attach::Begin),
            probe(1, every.clone()),
            probe(2, every),
            probe(3, Attach::End),
        ],
        maps: vec![map],
        actions: vec![printf("said "), action(ActionKind::Exit)],
        ..Script::default()
    }
}

/// Runs a script to its end; `None` if this user may not load programs.
fn finished(script: &Script, builder: &Builder) -> Option<SessionResult> {
    let _turn = testkit::kernel::may_run("a session")?;
    if !Capabilities::own()
        .missing(&[Capability::Bpf, Capability::Perfmon])
        .is_empty()
    {
        testkit::kernel::skip_if_permitted("kernel", "it needs CAP_BPF and CAP_PERFMON");
        return None;
    }
    let facts = Facts::new(
        Subject::All,
        builder.options.clone(),
        SharedObserver::clone(&builder.observer),
    );
    let bpf = bpf_session::Session::load(&script.module, facts.features()).unwrap();
    let mut session = Session::new(script.clone(), bpf, &facts, None, builder);
    session.attach().unwrap();
    let mut events = Vec::new();
    while !session.is_over() {
        events.extend(session.poll(Duration::from_millis(20)).unwrap());
    }
    let mut finished = session.finish().unwrap();
    finished.events.splice(0..0, events);
    Some(finished)
}

fn texts(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Printf { text, .. } => text.clone(),
        Event::Exit(status) => format!("exit {status}"),
        Event::Failure(failure) => failure.to_string(),
        other => format!("{other:?}"),
    };
    events.iter().map(text).collect()
}

#[test]
#[ignore = "deep truth: the kernel must pass over no tick of an interval before the script exits"]
fn begin_interval_exit_end_and_maps() {
    for ordered in [true, false] {
        let Some(finished) = finished(&script(), &Builder::new("").ordered(ordered)) else {
            return;
        };
        assert_eq!(finished.exit_status, 3);
        assert_eq!(texts(&finished.events), ["said 1\n", "exit 3", "said 2\n"]);
        let [ticks] = finished.maps.as_slice() else {
            panic!("{:?}", finished.maps)
        };
        let [(_, Cell::Value(count))] = ticks.rows.as_slice() else {
            panic!("{ticks:?}")
        };
        assert!(
            ticks.name == "@ticks" && count.number() >= Some(1),
            "{ticks:?}"
        );
    }
}

#[test]
fn a_script_of_only_begin_and_end_ends_by_itself() {
    let mut script = script();
    script.probes = vec![probe(0, Attach::Begin), probe(3, Attach::End)];
    let Some(finished) = finished(&script, &Builder::new("")) else {
        return;
    };
    assert_eq!(
        (finished.exit_status, finished.totals),
        (0, Totals::default())
    );
    assert_eq!(texts(&finished.events), ["said 1\n", "said 2\n"]);
}

#[test]
fn nothing_is_handed_out_behind_an_exit() {
    let mut script = script();
    script.module.programs[1] = program("exit", ProgramKind::RawTracepoint, sends(1, 7));
    script.probes = vec![
        probe(1, Attach::Begin),
        probe(0, Attach::Begin),
        probe(2, Attach::Interval { nanos: 1_000_000 }),
    ];
    let Some(finished) = finished(&script, &Builder::new("")) else {
        return;
    };
    assert_eq!(
        (finished.exit_status, texts(&finished.events)),
        (7, vec!["exit 7".to_owned()])
    );
}

#[test]
fn counts_at_a_place_are_a_failure() {
    let mut asm = Asm::new();
    let slot_bytes = size_of::<FailureSlot>() as u32;
    asm.load_data(R1, FAILURES, 0)
        .mov(R2, R1)
        .add(R2, slot_bytes.cast_signed())
        .store(Size::DW, R2.at(0), 3);
    asm.store(Size::DW, R2.at(8), -14).mov(R0, 0).exit();
    let mut script = script();
    script.module.programs[0] = program("fails", ProgramKind::RawTracepoint, asm.finish().unwrap());
    script
        .module
        .maps
        .push(MapDef::new(FAILURES, MapKind::Array, 4, 2 * slot_bytes, 1));
    script.probes = vec![probe(0, Attach::Begin)];
    let kinds = [FailureKind::DivisionByZero, FailureKind::UserStack];
    script.failures = kinds
        .map(|kind| Failure {
            kind,
            span: Span::empty(0),
        })
        .to_vec();
    let Some(finished) = finished(&script, &Builder::new("")) else {
        return;
    };
    assert_eq!(
        texts(&finished.events),
        ["the process's stack could not be read"]
    );
}
