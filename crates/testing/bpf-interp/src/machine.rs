//! The machine: results of helpers, and effects of programs.

use std::collections::BTreeMap;

use bpf_insn::MapDef;

use crate::exec::{Program, Run};
use crate::fault::{Fault, Place, Wrong};
use crate::foreign::Foreign;
use crate::maps::Map;
use crate::memory::Memory;

/// Size of a task's name, NUL included (`TASK_COMM_LEN` of `linux/sched.h`).
pub(crate) const COMM_BYTES: usize = 16;
/// Default limit on the instructions of a run.
const MAX_STEPS: u64 = 50_000_000;

/// The task that programs run for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Thread id.
    pub pid: u32,
    /// Process id.
    pub tgid: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Name; 15 bytes at most.
    pub comm: String,
    /// Address of its `task_struct`.
    pub address: u64,
}

/// Output of a program to the kernel's trace pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Printed {
    /// Format string.
    pub format: String,
    /// Values.
    pub values: Vec<u64>,
}

/// A machine with one set of maps. Tests read and set the public fields.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The current task.
    pub task: Task,
    /// Ids of process and thread in a separate PID namespace.
    pub namespaced: (u32, u32),
    /// The CPU that programs run on.
    pub cpu: usize,
    /// Time of all clocks, in nanoseconds; each read adds [`Machine::tick`].
    pub time: u64,
    /// Increment of the clock per read, in nanoseconds.
    pub tick: u64,
    /// State of the random numbers.
    pub random: u64,
    /// Id of the cgroup.
    pub cgroup: u64,
    /// NUMA node.
    pub numa_node: u64,
    /// Result of `bpf_get_func_ip`.
    pub function: u64,
    /// Result of `bpf_get_attach_cookie`.
    pub cookie: u64,
    /// Result of `bpf_get_socket_cookie`.
    pub socket_cookie: u64,
    /// Stack of the kernel.
    pub kernel_stack: Vec<u64>,
    /// Stack of the process.
    pub user_stack: Vec<u64>,
    /// Names of paths, by address.
    pub paths: BTreeMap<u64, String>,
    /// Limit on the instructions of a run.
    pub steps: u64,
    /// Signals sent by programs; true if only to the thread.
    pub signals: Vec<(i64, bool)>,
    /// Output of programs to the trace pipe.
    pub printed: Vec<Printed>,
    pub(crate) cpus: usize,
    pub(crate) memory: Memory,
    pub(crate) foreign: Foreign,
    pub(crate) maps: Vec<Map>,
}

impl Machine {
    /// Creates a machine with one CPU and these maps.
    pub fn new(maps: &[MapDef]) -> Result<Self, Fault> {
        Self::with_cpus(maps, 1)
    }

    /// Creates a machine with several CPUs. Programs run on the first by default.
    pub fn with_cpus(maps: &[MapDef], cpus: usize) -> Result<Self, Fault> {
        let mut memory = Memory::default();
        let make = |(index, def)| Map::new(def, index, cpus, &mut memory);
        let maps = maps
            .iter()
            .enumerate()
            .map(make)
            .collect::<Result<Vec<_>, _>>();
        let place = Place {
            function: "the maps".to_owned(),
            ..Place::default()
        };
        let nowhere = |wrong| Fault {
            place: Box::new(place),
            wrong,
        };
        Ok(Self {
            task: Task {
                pid: 4711,
                tgid: 4711,
                uid: 0,
                gid: 0,
                comm: "program".to_owned(),
                address: 0xffff_8880_0012_0000,
            },
            namespaced: (11, 12),
            cpu: 0,
            time: 1_000_000_000,
            tick: 1000,
            random: 0x1234_5678_9abc_def1,
            cgroup: 77,
            numa_node: 0,
            function: 0,
            cookie: 0,
            socket_cookie: 0,
            kernel_stack: Vec::new(),
            user_stack: Vec::new(),
            paths: BTreeMap::new(),
            steps: MAX_STEPS,
            signals: Vec::new(),
            printed: Vec::new(),
            cpus,
            memory,
            foreign: Foreign::default(),
            maps: maps.map_err(nowhere)?,
        })
    }

    /// Puts bytes into the memory of the process, or of the kernel if the address is in its half.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, true, false);
    }

    /// Puts bytes into the memory of the process that are absent until a program has waited for
    /// them.
    pub fn put_away(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, false, false);
    }

    /// Puts an object of the kernel into its memory, from which programs may load.
    pub fn put_object(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, true, true);
    }

    /// Runs a program, and returns its result.
    pub fn run(&mut self, program: &Program<'_>, context: &[u8]) -> Result<u64, Fault> {
        let result = Run::new(self, program, context).program();
        self.memory.sweep();
        result
    }

    fn map(&self, name: &str) -> Option<&Map> {
        self.maps.iter().find(|map| map.def.name == name)
    }

    /// Removes and returns the records that programs have sent through a ring, oldest first.
    pub fn records(&mut self, ring: &str) -> Vec<Vec<u8>> {
        let ring = self.maps.iter_mut().find(|map| map.def.name == ring);
        ring.map(Map::drain).unwrap_or_default()
    }

    /// Returns the keys of a map, in the order of their bytes.
    pub fn keys(&self, map: &str) -> Vec<Vec<u8>> {
        self.map(map).map(Map::keys).unwrap_or_default()
    }

    /// Makes allocations of new map entries fail from now on, except those allocated with the map.
    pub fn starve(&mut self) {
        self.maps.iter_mut().for_each(|map| map.starved = true);
    }

    /// Returns the values of a key: one, or one for each CPU. Empty if the map lacks the key.
    pub fn values(&self, map: &str, key: &[u8]) -> Vec<&[u8]> {
        let values = self.map(map).map(|map| map.values(key)).unwrap_or_default();
        values
            .iter()
            .map(|value| self.memory.whole(*value))
            .collect()
    }

    /// Fills all values of an array, from this byte on, with garbage: as an earlier program may
    /// have left them.
    pub fn spoil(&mut self, map: &str, from: usize) {
        let values: Vec<u64> = self
            .map(map)
            .map(|map| {
                map.keys()
                    .iter()
                    .flat_map(|key| map.values(key).to_vec())
                    .collect()
            })
            .unwrap_or_default();
        for value in values {
            let garbage = self.memory.garbage(self.memory.whole(value).len());
            if let Some(bytes) = self.memory.whole_mut(value).get_mut(from..) {
                bytes.copy_from_slice(&garbage[from..]);
            }
        }
    }

    pub(crate) fn map_at(&mut self, handle: u64) -> Result<usize, Wrong> {
        self.maps
            .iter()
            .position(|map| map.handle == handle)
            .ok_or(Wrong::NotAMap(handle))
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.time += self.tick;
        self.time
    }

    /// Returns the next random number (xorshift64).
    pub(crate) fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32
    }
}
