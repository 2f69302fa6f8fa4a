//! Programs that may wait for a page of the process's memory.

use bt_abi::Script;
use bt_compiler::KernelFacts;
use compiler_testkit::{FakeTarget, compile};

use crate::scripts::facts::live;

/// Returns for each of the script's programs whether it may wait.
fn waiting(body: &str) -> Vec<bool> {
    let kernel = KernelFacts {
        sleepable: true,
        ..live().kernel
    };
    let facts = FakeTarget { kernel, ..live() }.with_function("/bin/program", "function", 64);
    let script: Script = compile(body, &facts).unwrap_or_else(|wrong| panic!("{body}\n{wrong}"));
    script
        .module
        .programs
        .iter()
        .map(|program| program.sleepable)
        .collect()
}

#[test]
fn programs_wait_for_strings_of_processes_only() {
    let user = "uprobe:/bin/program:function";
    assert_eq!(waiting(&format!("{user} {{ print(str(arg0)); }}")), [true]);
    assert_eq!(
        waiting("uretprobe:/bin/program:function { print(buf(retval, 8)); }"),
        [true]
    );
    assert_eq!(
        waiting(&format!(
            "{user} {{ @[comm] = count(); @b[ustack] = hist(arg0); }}"
        )),
        [false]
    );
    assert_eq!(
        waiting(&format!("{user} {{ print(kstr(arg0)); }}")),
        [false]
    );
    assert_eq!(
        waiting("begin { print(str(1)); } interval:s:1 { print(str(1)); }"),
        [false, false]
    );
    // The kernel holds a lock while it goes through a map, not while it counts.
    assert_eq!(
        waiting(&format!(
            "{user} {{ @a[1] = 1; for ($kv : @a) {{ print(str(arg0)); }} }}"
        )),
        [false]
    );
    assert_eq!(
        waiting(&format!(
            "{user} {{ for ($i : 0..2) {{ print(str(arg0)); }} }}"
        )),
        [true]
    );
}
