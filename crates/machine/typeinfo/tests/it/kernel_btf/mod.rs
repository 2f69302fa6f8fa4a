//! This kernel's BTF, compared with the output of `bpftool`.

mod comparison;
mod dump;

use std::collections::{HashMap, HashSet};

use typeinfo::{Arch, Btf, NameKind, TypeError, TypeRef, TypeStore};

use comparison::Comparison;
use dump::dump;

const PATH: &str = "/sys/kernel/btf/vmlinux";

fn kernel() -> Option<Vec<u8>> {
    let bytes = std::fs::read(PATH).ok();
    if bytes.is_none() {
        testkit::kernel::skip_if_permitted("BTF", &format!("no {PATH}"));
    }
    bytes
}

fn store(bytes: &[u8]) -> TypeStore<'_> {
    let mut types = TypeStore::new(Arch::X86_64);
    types.add_btf(Btf::parse(bytes).unwrap()).unwrap();
    types
}

fn id(types: &TypeStore<'_>, ty: TypeRef) -> i64 {
    if ty.is_void() {
        0
    } else {
        types.btf_id(ty).unwrap().id.into()
    }
}

/// Every named struct, union, enum, typedef and function, found by a listing and compared whole.
#[test]
fn all_is_as_bpftool_says() {
    let (Some(bytes), Some(dumped)) = (kernel(), dump()) else {
        return;
    };
    let types = store(&bytes);
    let source = types
        .require(NameKind::Struct, "task_struct")
        .unwrap()
        .source();
    let mut queue = Vec::new();
    for kind in NameKind::ALL {
        types
            .each_name(source, kind, &mut |_, ty| {
                queue.push(ty);
                true
            })
            .unwrap();
    }
    let mut comparison = Comparison {
        types: &types,
        dumped: &dumped,
        queue,
        seen: HashSet::new(),
        members: 0,
    };
    comparison.run();
    let expected = |kind: &str| {
        dumped
            .values()
            .filter(|d| d.kind == kind && !d.name.is_empty())
            .count()
    };
    let found = |kind: &str| {
        comparison
            .seen
            .iter()
            .filter(|ty| dumped[&(id(&types, **ty) as u32)].kind == kind)
            .count()
    };
    for kind in ["STRUCT", "UNION", "ENUM", "TYPEDEF", "FUNC", "INT"] {
        assert!(
            found(kind) >= expected(kind),
            "{kind}: {} of {}",
            found(kind),
            expected(kind)
        );
    }
    let members = comparison.members;
    assert!(members > 1_000, "{members} members compared");
}

/// The first type of each kind and name is found by name.
#[test]
fn every_name_is_found() {
    let (Some(bytes), Some(dumped)) = (kernel(), dump()) else {
        return;
    };
    let types = store(&bytes);
    for (kind, theirs) in [
        (NameKind::Struct, "STRUCT"),
        (NameKind::Union, "UNION"),
        (NameKind::Typedef, "TYPEDEF"),
        (NameKind::Func, "FUNC"),
    ] {
        let mut first: HashMap<&str, u32> = HashMap::new();
        for (id, dumped) in dumped
            .iter()
            .filter(|(_, d)| d.kind == theirs && !d.name.is_empty())
        {
            let known = first.entry(&dumped.name).or_insert(*id);
            *known = (*known).min(*id);
        }
        for (name, number) in first {
            let found = types.find(kind, name).unwrap().unwrap();
            assert_eq!(id(&types, found), i64::from(number), "{name}");
        }
    }
}

#[test]
fn members_of_task_struct() {
    let Some(bytes) = kernel() else { return };
    let types = store(&bytes);
    let task = types.require(NameKind::Struct, "task_struct").unwrap();
    assert_eq!(
        types.display(types.member(task, "pid").unwrap().ty),
        "pid_t"
    );
    assert_eq!(
        types.size_of(types.member(task, "comm").unwrap().ty),
        Ok(16)
    );
    assert_eq!(
        types.declare(types.member(task, "comm").unwrap().ty, "comm"),
        "char comm[16]"
    );
    assert_eq!(
        types.display(types.member(task, "mm").unwrap().ty),
        "struct mm_struct *"
    );
    let (comm, third) = (
        types.path(task, "comm").unwrap(),
        types.path(task, "comm[3]").unwrap(),
    );
    assert_eq!(third.byte_offset(), comm.byte_offset() + 3);
    let error = types.member(task, "pidd").unwrap_err();
    assert!(
        matches!(&error, TypeError::NoMember { nearest, .. } if nearest[0] == "pid"),
        "{error}"
    );
    assert!(
        types
            .require(NameKind::Struct, "task_strukt")
            .unwrap_err()
            .to_string()
            .contains("task_struct")
    );
    assert!(
        types
            .definition(task, true)
            .unwrap()
            .contains("char comm[16]; /* ")
    );
}

#[test]
fn arguments_of_sched_switch() {
    let Some(bytes) = kernel() else { return };
    let types = store(&bytes);
    let switch = types.raw_tracepoint("sched_switch").unwrap().unwrap();
    let params: Vec<_> = switch
        .params
        .iter()
        .map(|p| types.declare(p.ty, p.name.unwrap_or("?")))
        .collect();
    assert_eq!(
        params[..3].iter().map(String::as_str).collect::<Vec<_>>(),
        [
            if params[0].starts_with("bool") {
                "bool preempt"
            } else {
                "_Bool preempt"
            },
            "struct task_struct *prev",
            "struct task_struct *next",
        ]
    );
    assert!(
        types
            .raw_tracepoint("no_such_tracepoint")
            .unwrap()
            .is_none()
    );
    assert!(
        types
            .find_enumerator("BPF_MAP_TYPE_RINGBUF")
            .unwrap()
            .is_some_and(|(_, value)| value == 27)
    );
}

/// A struct of the script that contains a kernel struct, and one that hides a kernel struct.
#[test]
fn scripts_build_on_the_kernels_types() {
    let Some(bytes) = kernel() else { return };
    let mut types = store(&bytes);
    let kernel = types.require(NameKind::Struct, "list_head").unwrap();
    let forward = types.forward(typeinfo::Tag::Struct, "task_struct").unwrap();
    let pointer = types.pointer_to(forward).unwrap();
    let int = types.base("int").unwrap().unwrap();
    let def = typeinfo::RecordDef {
        name: Some("mine".to_owned()),
        members: vec![
            typeinfo::MemberDef::new("n", int),
            typeinfo::MemberDef::new("list", kernel),
            typeinfo::MemberDef::new("task", pointer),
        ],
        ..typeinfo::RecordDef::default()
    };
    let mine = types.define_record(def).unwrap();
    assert_eq!(types.path(mine, "list.prev").unwrap().byte_offset(), 16);
    assert_eq!((types.size_of(mine), types.align_of(mine)), (Ok(32), Ok(8)));
    let completed = types.strip(forward).unwrap();
    assert_eq!(
        Ok(completed),
        types.require(NameKind::Struct, "task_struct")
    );
}
