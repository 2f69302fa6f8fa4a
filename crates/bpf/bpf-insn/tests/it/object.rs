//! The object as read by aya's own reader, and the builder's errors. No kernel is needed.

use aya_obj::{Object, ProgramSection};
use bpf_insn::Reg::*;
use bpf_insn::*;

fn exit() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    asm.mov(R0, 0).exit();
    asm.finish()
}

#[test]
fn aya_reads_the_maps() {
    let object = Object::parse(&crate::common::sample::object(1).unwrap()).unwrap();
    let mut names: Vec<&str> = object.maps.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            ".bss", ".data", ".rodata", "counts", "events", "least", "scratch", "stacks"
        ]
    );
    let sizes = |name: &str| {
        let map = &object.maps[name];
        (
            map.map_type(),
            map.key_size(),
            map.value_size(),
            map.max_entries(),
            map.map_flags(),
        )
    };
    assert_eq!(sizes("counts"), (MapKind::Hash as u32, 4, 8, 64, 0));
    assert_eq!(sizes("events"), (MapKind::RingBuf as u32, 0, 0, 1 << 16, 0));
    assert_eq!(
        sizes("stacks"),
        (MapKind::StackTrace as u32, 4, 127 * 8, 16, 0)
    );
    assert_eq!(object.maps[".bss"].value_size(), 16);
    assert_eq!(
        object.maps[".rodata"].data()[8..],
        crate::common::sample::MAGIC.to_le_bytes()
    );
}

#[test]
fn aya_reads_the_programs() {
    let object = Object::parse(&crate::common::sample::object(1).unwrap()).unwrap();
    let mut names: Vec<&str> = object.programs.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "on_call",
            "on_enter",
            "on_other_call",
            "on_return",
            "on_switch",
            "on_tick"
        ]
    );
    let section = |name: &str| object.programs[name].section.clone();
    assert!(matches!(section("on_enter"), ProgramSection::RawTracePoint));
    assert!(matches!(
        section("on_call"),
        ProgramSection::UProbe { sleepable: false }
    ));
    assert!(matches!(
        section("on_return"),
        ProgramSection::URetProbe { .. }
    ));
    assert!(matches!(section("on_switch"), ProgramSection::TracePoint));
    assert_eq!(object.license.to_str(), Ok("GPL"));
    assert_eq!(object.functions.len(), 8, "programs and subprograms");
}

#[test]
fn flags_and_the_largest_numbers_survive() {
    let mut builder = ObjectBuilder::new("GPL");
    builder.map(MapDef::new("big", MapKind::Array, 4, u32::MAX, u32::MAX).with_flags(0x8000_0400));
    builder.program("uprobe", "f", exit().unwrap());
    let object = Object::parse(&builder.build().unwrap()).unwrap();
    let map = &object.maps["big"];
    assert_eq!(
        (map.value_size(), map.max_entries(), map.map_flags()),
        (u32::MAX, u32::MAX, 0x8000_0400)
    );
}

#[test]
fn the_same_object_twice_is_the_same_bytes() {
    assert_eq!(
        crate::common::sample::object(7).unwrap(),
        crate::common::sample::object(7).unwrap()
    );
}

#[test]
fn an_object_without_maps_or_data_is_one_too() {
    let mut builder = ObjectBuilder::new("Dual MIT/GPL");
    builder.program("raw_tp", "f", exit().unwrap());
    let object = Object::parse(&builder.build().unwrap()).unwrap();
    assert!(object.maps.is_empty());
    assert_eq!(object.programs.len(), 1);
}

/// Returns the reason why an object with one program, `f`, is refused.
fn refused(fill: impl FnOnce(&mut ObjectBuilder), emit: impl FnOnce(&mut Asm)) -> Option<String> {
    let mut asm = Asm::new();
    emit(&mut asm);
    asm.exit();
    let mut builder = ObjectBuilder::new("GPL");
    builder.program("uprobe", "f", asm.finish().ok()?);
    fill(&mut builder);
    builder.build().err().map(|error| error.to_string())
}

#[test]
fn missing_names_are_reported() {
    let refused = |emit: fn(&mut Asm)| refused(|_| {}, emit).unwrap_or_default();
    assert_eq!(
        refused(|asm| {
            asm.mov(R6, R1).load_map(R1, "evnets");
        }),
        "`f` refers to the map `evnets` at instruction 1, which does not exist"
    );
    assert_eq!(
        refused(|asm| {
            asm.load_data(R1, "limit", 0);
        }),
        "`f` refers to the data `limit` at instruction 0, which does not exist"
    );
    assert_eq!(
        refused(|asm| {
            asm.call_subprogram("f");
        }),
        "`f` refers to the subprogram `f` at instruction 0, which does not exist"
    );
}

#[test]
fn bad_names_and_sections_are_reported() {
    let refused = |fill: fn(&mut ObjectBuilder)| refused(fill, |_| {}).unwrap_or_default();
    assert_eq!(
        refused(|object| {
            object.constant("f", &[1]);
        }),
        "`f` is defined twice"
    );
    assert_eq!(
        refused(|object| {
            object.map(MapDef::ring_buffer("my-map", 4096));
        }),
        "`my-map` is not a valid name: expected a letter or `_`, then letters, digits and `_`"
    );
    assert_eq!(
        refused(|object| {
            object.program("license", "g", Code::default());
        }),
        "`license` is not a valid section for program `g`"
    );
    assert_eq!(
        refused(|object| {
            object.subprogram("g", Code::default());
        }),
        "function `g` has no instructions"
    );
    let error = ObjectBuilder::new("").build().unwrap_err();
    assert_eq!(error.to_string(), "`` is not a valid licence");
}
