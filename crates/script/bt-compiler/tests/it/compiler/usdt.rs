//! Places of a USDT probe.

use bt_abi::Attach;
use compiler_testkit::{FakeTarget, compile};
use uapi::Arch;

/// A compiler can write the same place in two ways, if its options differ between two files.
#[test]
fn places_with_equal_arguments_share_a_program() {
    let places = ["8@16(%rbp)", "8@0x10(%rbp)", "8@24(%rbp)"];
    let target = FakeTarget::new(Arch::X86_64).with_usdt("/bin/it", "it", "p", &places);
    let script = compile("usdt:/bin/it:it:p { @ = arg0; }", &target).unwrap();
    let counts = script.probes.iter().map(|probe| match &probe.attach {
        Attach::Uprobe { places, .. } => places.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(counts.collect::<Vec<_>>(), [2, 1]);
    assert_eq!(script.module.programs.len(), 2);
}
