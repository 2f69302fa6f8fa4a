//! Benchmarks of kernel BTF: finding the records, finding the names, one query. aya parses the same
//! bytes for comparison.

use std::hint::black_box;

use divan::Bencher;
use typeinfo::{Arch, Btf, NameKind, TypeStore};

fn main() {
    divan::main();
}

/// Reads this machine's kernel BTF; empty if the kernel has none.
fn kernel() -> Vec<u8> {
    std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default()
}

#[divan::bench]
fn records(bencher: Bencher<'_, '_>) {
    let bytes = kernel();
    bencher.bench(|| Btf::parse(black_box(&bytes)).map(|btf| btf.type_count()));
}

#[divan::bench]
fn records_names_and_one_struct(bencher: Bencher<'_, '_>) {
    let bytes = kernel();
    bencher.bench(|| {
        let mut types = TypeStore::new(Arch::X86_64);
        types.add_btf(Btf::parse(black_box(&bytes))?)?;
        types.require(NameKind::Struct, "task_struct")
    });
}

#[divan::bench]
fn a_member(bencher: Bencher<'_, '_>) {
    let bytes = kernel();
    let mut types = TypeStore::new(Arch::X86_64);
    let Ok(btf) = Btf::parse(&bytes) else {
        return;
    };
    let task = types
        .add_btf(btf)
        .and_then(|_| types.require(NameKind::Struct, "task_struct"));
    bencher.bench(|| types.member(black_box(task.clone()?), "comm"));
}

#[divan::bench]
fn aya_parses_all(bencher: Bencher<'_, '_>) {
    let bytes = kernel();
    bencher
        .bench(|| aya_obj::btf::Btf::parse(black_box(&bytes), object::Endianness::Little).is_ok());
}
