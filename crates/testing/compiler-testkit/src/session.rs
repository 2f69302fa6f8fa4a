//! A script, run on the interpreter.

use bpf_interp::{Fault, Machine, Program, Task};
use bpf_program::event::RING;
use bt_abi::{Attach, Script};
use uapi::Arch;

use crate::target::FakeTarget;
use crate::{compile, decode};

/// The map whose values programs leave as they are when they end.
const SCRATCH: &str = "scratch";
/// What says whether a value of [`SCRATCH`] is taken; the bytes behind it are whatever was left there.
const SCRATCH_HEAD: usize = 8;

/// A compiled script with its maps and the machine that it runs on.
#[derive(Debug)]
pub struct Session {
    /// What was compiled.
    pub script: Script,
    /// What it runs on.
    pub machine: Machine,
}

/// The context of a probe in code: the registers at these offsets, which are those of the kernel's `struct pt_regs`. What is
/// not said is a number that nobody would write.
pub fn registers(arch: Arch, values: &[(u32, u64)]) -> Vec<u8> {
    // `struct pt_regs` of x86-64 has 21 words, `struct user_pt_regs` of aarch64 has 34.
    let words = if arch == Arch::X86_64 { 21 } else { 34 };
    let mut bytes = vec![0x5a; words * 8];
    for (offset, value) in values {
        bytes[*offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// The task as `struct task_struct` of `facts/facts.c` has it: it leads its group and is its own parent.
fn task(task: &Task) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[16..20].copy_from_slice(&task.pid.to_le_bytes());
    bytes[20..24].copy_from_slice(&task.tgid.to_le_bytes());
    bytes[24..24 + task.comm.len()].copy_from_slice(task.comm.as_bytes());
    for pointer in [40, 48, 56] {
        bytes[pointer..pointer + 8].copy_from_slice(&task.address.to_le_bytes());
    }
    bytes
}

impl Session {
    /// Compiles a script and makes its maps.
    ///
    /// # Panics
    /// If the compiler refuses it.
    #[track_caller]
    pub fn new(source: &str, target: &FakeTarget) -> Self {
        let script = compile(source, target).unwrap_or_else(|wrong| panic!("{source}\n{wrong}"));
        Self::of(script, target)
    }

    /// Makes the maps of a script.
    ///
    /// # Panics
    /// If the interpreter does not know one's kind.
    #[track_caller]
    pub fn of(script: Script, target: &FakeTarget) -> Self {
        let machine = Machine::with_cpus(&script.module.maps, target.cpus.0 as usize);
        let mut machine = machine.unwrap_or_else(|fault| panic!("{fault}"));
        machine.spoil(SCRATCH, SCRATCH_HEAD);
        let address = machine.task.address;
        machine.put_object(address, &task(&machine.task));
        Self { script, machine }
    }

    /// Runs a program with a context.
    pub fn run(&mut self, program: usize, context: &[u8]) -> Result<u64, Fault> {
        let program = &self.script.module.programs[program];
        let whole = Program::new(&program.name, &program.code).sleepable(program.sleepable);
        let subs = program.subprograms.iter();
        let whole = subs.fold(whole, |whole, sub| whole.with_subprogram(&sub.name, &sub.code));
        self.machine.run(&whole, context)
    }

    /// Runs the programs of all probes that are attached so; their faults are panics.
    #[track_caller]
    pub fn run_all(&mut self, context: &[u8], is_it: impl Fn(&Attach) -> bool) {
        let probes = self.script.probes.iter().filter(|probe| is_it(&probe.attach));
        for program in probes.map(|probe| probe.program).collect::<Vec<_>>() {
            self.run(program, context).unwrap_or_else(|fault| panic!("{fault}"));
        }
    }

    /// Runs the `begin` and `end` probes; what they print.
    #[track_caller]
    pub fn begin_and_end(&mut self) -> Vec<String> {
        // They have the arguments of a raw tracepoint, which nobody looks at.
        self.run_all(&[], |attach| matches!(attach, Attach::Begin | Attach::End));
        self.events()
    }

    /// What was printed since the last time.
    pub fn events(&mut self) -> Vec<String> {
        let records = self.machine.records(RING);
        records.iter().map(|bytes| decode::event(&self.script, bytes)).collect()
    }

    /// The entries of a map, by its name with the `@`, each `[key]: value`, sorted.
    pub fn map(&self, name: &str) -> Vec<String> {
        let map = self.script.maps.iter().find(|map| map.name == name).unwrap();
        let keys = self.machine.keys(map.key_table.as_ref().map_or(&map.bpf_name, |table| &table.bpf_name));
        let entry = |key: &Vec<u8>| {
            let mut values = self.machine.values(&map.bpf_name, key);
            // What all CPUs share counts as one more's.
            let shared = map.key_table.iter().flat_map(|table| {
                let values = self.machine.values(&table.bpf_name, key);
                values.into_iter().map(|value| &value[table.value_offset as usize..])
            });
            values.extend(shared);
            decode::entry(map, key, &values)
        };
        let mut entries: Vec<String> = keys.iter().map(entry).collect();
        entries.sort();
        entries
    }
}
