//! Marks of programs that were hit.

use bt_abi::hits::HITS;
use compiler_testkit::{FakeTarget, Session, sample};

use super::called;
use crate::compiler::MACHINES;

#[test]
fn programs_that_were_hit_are_marked() {
    let script = "uprobe:/bin/a:f { @a = 1; } uprobe:/bin/a:f / arg0 == 5 / { @b = 1; }";
    let marks = |session: &Session| session.machine.values(HITS, &0_u32.to_le_bytes()).concat();
    for arch in MACHINES {
        let target = FakeTarget {
            marks_hits: true,
            ..sample::on(arch)
        };
        let mut session = Session::new(script, &target);
        assert_eq!(marks(&session), [0; 8]);
        // A hit that the filter rejects is a hit, too.
        let context = called(arch, &[7]);
        session.run(1, &context).expect("it runs");
        session.run(1, &context).expect("it runs again");
        assert_eq!(marks(&session), [0, 0, 0, 0, 1, 0, 0, 0]);
        let unmarked = Session::new(script, &sample::on(arch));
        let maps = &unmarked.script.module.maps;
        assert!(!maps.iter().any(|map| map.name == HITS));
    }
}
