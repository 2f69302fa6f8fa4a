//! Any bytes as BTF, by itself and as a module's on top of itself.
#![no_main]

use dptrace_fuzz::types::ask;
use libfuzzer_sys::fuzz_target;
use typeinfo::{Arch, Btf, TypeStore};

fuzz_target!(|bytes: &[u8]| {
    let btf = match Btf::parse(bytes) {
        Ok(btf) => btf,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(btf.type_count() * 12 <= bytes.len());
    let split = Btf::parse_split(bytes, &btf);
    let mut types = TypeStore::new(Arch::X86_64);
    let Ok(base) = types.add_btf(btf) else { return };
    ask(&types, base);
    if let Ok(split) = split.and_then(|split| types.add_split_btf(split, base)) {
        ask(&types, split);
    }
});
