//! The machine: what helpers answer, and what programs leave behind.

use std::collections::BTreeMap;

use bpf_insn::MapDef;

use crate::exec::{Program, Run};
use crate::fault::{Fault, Place, Wrong};
use crate::foreign::Foreign;
use crate::maps::Map;
use crate::memory::Memory;

/// The bytes of a task's name, its end included (`TASK_COMM_LEN` of `linux/sched.h`).
pub(crate) const COMM_BYTES: usize = 16;
/// How many instructions a run has at most, if nothing else is said.
const STEPS: u64 = 50_000_000;

/// The task that programs run for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The thread.
    pub pid: u32,
    /// The process.
    pub tgid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its name; 15 bytes at most.
    pub comm: String,
    /// The address of its `task_struct`.
    pub address: u64,
}

/// What a program wrote to the kernel's trace pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Printed {
    /// The format.
    pub format: String,
    /// The values.
    pub values: Vec<u64>,
}

/// A machine with one set of maps. What tests look at and set is public.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Who runs.
    pub task: Task,
    /// The ids of process and thread as a PID namespace of its own has them.
    pub namespaced: (u32, u32),
    /// The CPU that programs run on.
    pub cpu: usize,
    /// The time of all clocks, in nanoseconds; each look at one takes [`Machine::tick`].
    pub time: u64,
    /// How far a look at the clock moves it on, in nanoseconds.
    pub tick: u64,
    /// What the next random numbers are made of.
    pub random: u64,
    /// The cgroup's id.
    pub cgroup: u64,
    /// The NUMA node.
    pub numa_node: u64,
    /// What `bpf_get_func_ip` gives.
    pub function: u64,
    /// What `bpf_get_attach_cookie` gives.
    pub cookie: u64,
    /// What `bpf_get_socket_cookie` gives.
    pub socket_cookie: u64,
    /// The kernel's stack.
    pub kernel_stack: Vec<u64>,
    /// The process's stack.
    pub user_stack: Vec<u64>,
    /// The names of the paths at these addresses.
    pub paths: BTreeMap<u64, String>,
    /// How many instructions a run has at most.
    pub steps: u64,
    /// The signals that programs sent, and whether only to the thread.
    pub signals: Vec<(i64, bool)>,
    /// What programs wrote to the trace pipe.
    pub printed: Vec<Printed>,
    pub(crate) cpus: usize,
    pub(crate) memory: Memory,
    pub(crate) foreign: Foreign,
    pub(crate) maps: Vec<Map>,
}

impl Machine {
    /// A machine of one CPU with these maps.
    pub fn new(maps: &[MapDef]) -> Result<Self, Fault> {
        Self::with_cpus(maps, 1)
    }

    /// A machine of some CPUs, of which programs run on the first if nothing else is said.
    pub fn with_cpus(maps: &[MapDef], cpus: usize) -> Result<Self, Fault> {
        let mut memory = Memory::default();
        let make = |(index, def)| Map::new(def, index, cpus, &mut memory);
        let maps = maps.iter().enumerate().map(make).collect::<Result<Vec<_>, _>>();
        let place = Place { function: "the maps".to_owned(), ..Place::default() };
        let nowhere = |wrong| Fault { place: Box::new(place), wrong };
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
            steps: STEPS,
            signals: Vec::new(),
            printed: Vec::new(),
            cpus,
            memory,
            foreign: Foreign::default(),
            maps: maps.map_err(nowhere)?,
        })
    }

    /// Puts bytes into the memory of the process, or of the kernel where the address is in its half.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, true, false);
    }

    /// Puts bytes into the memory of the process that are not there before a program has waited for them.
    pub fn put_away(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, false, false);
    }

    /// Puts an object of the kernel's into its memory, from which programs may load.
    pub fn put_object(&mut self, address: u64, bytes: &[u8]) {
        self.foreign.put(address, bytes, true, true);
    }

    /// Runs a program; its result.
    pub fn run(&mut self, program: &Program<'_>, context: &[u8]) -> Result<u64, Fault> {
        let result = Run::new(self, program, context).program();
        self.memory.sweep();
        result
    }

    fn map(&self, name: &str) -> Option<&Map> {
        self.maps.iter().find(|map| map.def.name == name)
    }

    /// The records that programs have sent through a ring, oldest first. They are taken out of it.
    pub fn records(&mut self, ring: &str) -> Vec<Vec<u8>> {
        let ring = self.maps.iter_mut().find(|map| map.def.name == ring);
        ring.map(Map::drain).unwrap_or_default()
    }

    /// The keys of a map, in the order of their bytes.
    pub fn keys(&self, map: &str) -> Vec<Vec<u8>> {
        self.map(map).map(Map::keys).unwrap_or_default()
    }

    /// From now on there is no memory for maps' entries that was not taken with the map.
    pub fn starve(&mut self) {
        self.maps.iter_mut().for_each(|map| map.starved = true);
    }

    /// The values of a key: one, or one for each CPU. Nothing if the map does not have it.
    pub fn values(&self, map: &str, key: &[u8]) -> Vec<&[u8]> {
        let values = self.map(map).map(|map| map.values(key)).unwrap_or_default();
        values.iter().map(|value| self.memory.whole(*value)).collect()
    }

    /// Fills all values of an array with what nobody would write, from this byte on: as an earlier program may have left them.
    pub fn spoil(&mut self, map: &str, from: usize) {
        let values: Vec<u64> = self
            .map(map)
            .map(|map| map.keys().iter().flat_map(|key| map.values(key).to_vec()).collect())
            .unwrap_or_default();
        for value in values {
            let garbage = self.memory.garbage(self.memory.whole(value).len());
            if let Some(bytes) = self.memory.whole_mut(value).get_mut(from..) {
                bytes.copy_from_slice(&garbage[from..]);
            }
        }
    }

    pub(crate) fn map_at(&mut self, handle: u64) -> Result<usize, Wrong> {
        self.maps.iter().position(|map| map.handle == handle).ok_or(Wrong::NotAMap(handle))
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.time += self.tick;
        self.time
    }

    /// The next random number (xorshift64).
    pub(crate) fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32
    }
}
