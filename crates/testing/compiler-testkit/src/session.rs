//! A script that runs on the interpreter.

use bpf_interp::{Fault, Machine, Program, Task};
use bpf_program::event::RING;
use bt_abi::{Attach, Script};
use uapi::Arch;

use crate::target::FakeTarget;
use crate::{compile, decode};

/// The map whose values programs leave behind when they end.
const SCRATCH: &str = "scratch";
/// Size of the head of a [`SCRATCH`] value, which marks it as taken; the bytes after it are
/// arbitrary.
const SCRATCH_HEAD: usize = 8;

/// A compiled script with its maps and its machine.
#[derive(Debug)]
pub struct Session {
    /// The compiled script.
    pub script: Script,
    /// The machine that it runs on.
    pub machine: Machine,
}

/// Returns the context of a probe in code: registers at these offsets of the kernel's
/// `struct pt_regs`. All others hold a conspicuous number.
pub fn registers(arch: Arch, values: &[(u32, u64)]) -> Vec<u8> {
    // `struct pt_regs` of x86-64 has 21 words, `struct user_pt_regs` of aarch64 has 34.
    let words = if arch == Arch::X86_64 { 21 } else { 34 };
    let mut bytes = vec![0x5a; words * 8];
    for (offset, value) in values {
        bytes[*offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Returns the task as `struct task_struct` of `facts/facts.c`: it leads its group and is its own
/// parent.
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
    /// Compiles a script and creates its maps.
    ///
    /// # Panics
    /// If the compiler rejects it.
    #[track_caller]
    pub fn new(source: &str, target: &FakeTarget) -> Self {
        let script = compile(source, target).unwrap_or_else(|wrong| panic!("{source}\n{wrong}"));
        Self::from_script(script, target)
    }

    /// Creates the maps of a script.
    ///
    /// # Panics
    /// If the interpreter lacks the kind of a map.
    #[track_caller]
    pub fn from_script(script: Script, target: &FakeTarget) -> Self {
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
        let whole = subs.fold(whole, |whole, sub| {
            whole.with_subprogram(&sub.name, &sub.code)
        });
        self.machine.run(&whole, context)
    }

    /// Runs the programs of all probes whose attachment matches; panics on faults.
    #[track_caller]
    pub fn run_all(&mut self, context: &[u8], matches: impl Fn(&Attach) -> bool) {
        let probes = self
            .script
            .probes
            .iter()
            .filter(|probe| matches(&probe.attach));
        for program in probes.map(|probe| probe.program).collect::<Vec<_>>() {
            self.run(program, context)
                .unwrap_or_else(|fault| panic!("{fault}"));
        }
    }

    /// Runs the `begin` and `end` probes, and returns their output.
    #[track_caller]
    pub fn begin_and_end(&mut self) -> Vec<String> {
        // Their arguments are those of a raw tracepoint, which are not used.
        self.run_all(&[], |attach| matches!(attach, Attach::Begin | Attach::End));
        self.events()
    }

    /// Returns the output since the last call.
    pub fn events(&mut self) -> Vec<String> {
        let records = self.machine.records(RING);
        records
            .iter()
            .map(|bytes| decode::event(&self.script, bytes))
            .collect()
    }

    /// Returns the sorted entries of a map as `[key]: value`, given its name with the `@`.
    pub fn map(&self, name: &str) -> Vec<String> {
        let map = self
            .script
            .maps
            .iter()
            .find(|map| map.name == name)
            .unwrap();
        let keys = self.machine.keys(
            map.key_table
                .as_ref()
                .map_or(&map.bpf_name, |table| &table.bpf_name),
        );
        let entry = |key: &Vec<u8>| {
            let mut values = self.machine.values(&map.bpf_name, key);
            // The value shared by all CPUs counts as that of one more.
            let shared = map.key_table.iter().flat_map(|table| {
                let values = self.machine.values(&table.bpf_name, key);
                values
                    .into_iter()
                    .map(|value| &value[table.value_offset as usize..])
            });
            values.extend(shared);
            decode::entry(map, key, &values)
        };
        let mut entries: Vec<String> = keys.iter().map(entry).collect();
        entries.sort();
        entries
    }
}
