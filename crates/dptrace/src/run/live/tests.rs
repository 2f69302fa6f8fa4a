//! Scripts made by hand, on this kernel: what the runtime does does not hang on the compiler.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R7, R10};
use bpf_insn::{Asm, Helper, JumpOp, MapDef, MapKind, Size};
use bpf_program::event::{LOST, RING};
use bpf_program::module::ProgramKind;
use bpf_program::{Module, ProgramDef};
use bt_abi::action::{ACTION, TIME};
use bt_abi::failure::{FAILURE_BYTES, FAILURES};
use bt_abi::{
    Action, ActionKind, Failure, FailureKind, Field, FormatPiece, FormatSpec, MapValue, PrintTo, ScriptMap, ValueType,
};
use bt_lang::Span;
use bt_runtime::{Decoder, Printer};
use clap::Parser as _;
use host::{Capabilities, Capability};

use super::super::facts::{Facts, Subject};
use super::super::lookups::Machine;
use super::super::source::ScriptText;
use super::*;

const U64: ValueType = ValueType::Int { size: 8, signed: false };

/// A program that sends an event of this action, whose one field is `value`.
fn sends(action: i32, value: i32) -> bpf_insn::Code {
    let mut asm = Asm::new();
    let full = asm.label("full");
    asm.call(Helper::KTIME_GET_NS).mov(R6, R0).load_map(R1, RING).mov(R2, 24).mov(R3, 0);
    asm.call(Helper::RINGBUF_RESERVE).jump_if(R0, JumpOp::Eq, 0, full).mov(R7, R0);
    asm.store(Size::DW, R7.at(TIME.try_into().unwrap()), R6).store(Size::W, R7.at(ACTION.try_into().unwrap()), action);
    asm.store(Size::W, R7.at(12), 0).store(Size::DW, R7.at(16), value);
    asm.mov(R1, R7).mov(R2, 0).call(Helper::RINGBUF_SUBMIT).bind(full).mov(R0, 0).exit();
    asm.finish().unwrap()
}

/// A program that adds one to the only element of the map `m`.
fn counts() -> bpf_insn::Code {
    let mut asm = Asm::new();
    let new = asm.label("new");
    let done = asm.label("done");
    asm.store(Size::DW, R10.at(-8), 0).load_map(R1, "m").mov(R2, R10).add(R2, -8).call(Helper::MAP_LOOKUP_ELEM);
    asm.jump_if(R0, JumpOp::Eq, 0, new)
        .load(Size::DW, R1, R0.at(0))
        .add(R1, 1)
        .store(Size::DW, R0.at(0), R1)
        .jump(done);
    asm.bind(new).store(Size::DW, R10.at(-16), 1).load_map(R1, "m").mov(R2, R10).add(R2, -8).mov(R3, R10).add(R3, -16);
    asm.mov(bpf_insn::Reg::R4, 0).call(Helper::MAP_UPDATE_ELEM).bind(done).mov(R0, 0).exit();
    asm.finish().unwrap()
}

fn program(name: &str, kind: ProgramKind, code: bpf_insn::Code) -> ProgramDef {
    ProgramDef { name: name.into(), kind, target: None, sleepable: false, code, subprograms: Vec::new() }
}

fn probe(program: usize, attach: Attach) -> ScriptProbe {
    ScriptProbe { program, attach, name: format!("probe {program}"), count: 1, span: Span::empty(0) }
}

fn action(kind: ActionKind) -> Action {
    let field = Field { name: None, offset: 16, ty: U64, bits: None };
    Action { kind, fields: vec![field], size: 24, span: Span::empty(0), callers: Vec::new() }
}

fn printf(text: &str) -> Action {
    let spec = FormatSpec { conversion: 'd', ..FormatSpec::default() };
    let format = vec![FormatPiece::Text(text.into()), FormatPiece::Value(spec), FormatPiece::Text("\n".into())];
    action(ActionKind::Printf { format, to: PrintTo::Output })
}

/// `begin` says 1, `interval:ms:20` counts and exits with 3, `end` says 2.
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
        MapDef::new(LOST, MapKind::Array, 4, 16, 1),
        MapDef::new("m", MapKind::PercpuHash, 8, 8, 16),
    ];
    let every = Attach::Interval { nanos: 20_000_000 };
    let map = ScriptMap {
        name: "@ticks".into(),
        bpf_name: "m".into(),
        key: ValueType::None,
        key_size: 8,
        value: MapValue::Count,
        per_cpu: true,
        key_table: None,
    };
    Script {
        module: Module { maps, programs, ..Module::default() },
        probes: vec![probe(0, Attach::Begin), probe(1, every.clone()), probe(2, every), probe(3, Attach::End)],
        maps: vec![map],
        actions: vec![printf("said "), action(ActionKind::Exit)],
        ..Script::default()
    }
}

fn output_of(script: &Script, options: &[&str]) -> Option<(u8, String)> {
    if !Capabilities::own().missing(&[Capability::Bpf, Capability::Perfmon]).is_empty() {
        eprintln!("skipped: it needs CAP_BPF and CAP_PERFMON");
        return None;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let words = [&["dptrace", "run", "-q", "-e", "", "-o", path], options].concat();
    let crate::cli::Command::Run(args) = crate::cli::Cli::parse_from(words).command else { unreachable!() };
    let facts = Facts::new(Subject::All, Vec::new(), &args);
    let session = Session::load(&script.module, facts.features()).unwrap();
    let text = ScriptText { name: "test".into(), text: String::new(), before: 0, params: Vec::new(), bundled: None };
    let machine = Machine::new(facts.kernel_symbols(), &script.config, Vec::new(), symbolize::DebugFolders::default());
    let decoder = Decoder::new(&machine, "..");
    let printer = Printer::new(args.form().unwrap());
    let events = Events { script, text: &text, machine: &machine, decoder, printer, warnings: true, exit: None };
    let output = Output::open(args.output.as_deref()).unwrap();
    let interrupt = Interrupt::never();
    let setting = Setting { args: &args, interrupt: &interrupt, held: None, child: None, process: None, pid: None };
    let (status, _) = Live::new(session, events, output, &setting).run(setting).unwrap();
    Some((status, std::fs::read_to_string(path).unwrap()))
}

#[test]
fn begin_interval_exit_end_and_maps() {
    for options in [&[][..], &["--no-order"]] {
        let Some((status, shown)) = output_of(&script(), options) else { return };
        assert_eq!(status, 3);
        let (before, ticks) = shown.split_once("@ticks: ").unwrap();
        assert_eq!(before, "said 1\nsaid 2\n\n\n");
        assert!(ticks.trim().parse::<u64>().unwrap() >= 1, "{shown}");
    }
}

#[test]
fn what_is_only_begin_and_end_ends_by_itself() {
    let mut script = script();
    script.probes = vec![probe(0, Attach::Begin), probe(3, Attach::End)];
    let Some(shown) = output_of(&script, &[]) else { return };
    assert_eq!(shown, (0, "said 1\nsaid 2\n\n\n".into()));
}

#[test]
fn nothing_is_shown_behind_an_exit() {
    let mut script = script();
    script.module.programs[1] = program("exit", ProgramKind::RawTracepoint, sends(1, 7));
    script.probes =
        vec![probe(1, Attach::Begin), probe(0, Attach::Begin), probe(2, Attach::Interval { nanos: 1_000_000 })];
    let Some(shown) = output_of(&script, &[]) else { return };
    assert_eq!(shown, (7, "\n\n".into()));
}

#[test]
fn what_was_counted_at_a_place_is_told() {
    let mut asm = Asm::new();
    let second = i32::try_from(FAILURE_BYTES).unwrap();
    asm.load_data(R1, FAILURES, 0).mov(R2, R1).add(R2, second).store(Size::DW, R2.at(0), 3);
    asm.store(Size::DW, R2.at(8), -14).mov(R0, 0).exit();
    let mut script = script();
    script.module.programs[0] = program("fails", ProgramKind::RawTracepoint, asm.finish().unwrap());
    script.module.maps.push(MapDef::new(FAILURES, MapKind::Array, 4, 2 * FAILURE_BYTES, 1));
    script.probes = vec![probe(0, Attach::Begin)];
    let kinds = [FailureKind::DivisionByZero, FailureKind::UserStack];
    script.failures = kinds.map(|kind| Failure { kind, span: Span::empty(0) }).to_vec();
    let Some((_, shown)) = output_of(&script, &["-f", "json"]) else { return };
    let expected = "{\"type\": \"runtime_error\", \"msg\": \"the process's stack could not be read\", \"filename\": \"test\", \"line\": 1, \
                    \"col\": 1}\n";
    assert!(shown.contains(expected) && !shown.contains("Divide"), "{shown}");
}
