//! Shares of a time, by kind.

use ordering::Order as _;

use crate::{CpuUse, Part, Phase};

/// Nanoseconds by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<K> {
    nanos: [u64; KINDS],
    kind: std::marker::PhantomData<K>,
}

impl<K> Default for Share<K> {
    fn default() -> Self {
        Self {
            nanos: [0; KINDS],
            kind: std::marker::PhantomData,
        }
    }
}

impl<K: Kind> Share<K> {
    /// Adds nanoseconds to a kind.
    pub fn add(&mut self, kind: K, nanos: u64) {
        let sum = &mut self.nanos[kind.index() % KINDS];
        *sum = sum.saturating_add(nanos);
    }

    /// Subtracts nanoseconds from a kind, down to 0.
    pub fn take(&mut self, kind: K, nanos: u64) {
        let sum = &mut self.nanos[kind.index() % KINDS];
        *sum = sum.saturating_sub(nanos);
    }

    /// Returns the nanoseconds of a kind.
    pub fn get(&self, kind: K) -> u64 {
        self.nanos[kind.index() % KINDS]
    }

    /// Returns the sum of all kinds, in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.nanos
            .iter()
            .fold(0, |sum, nanos| sum.saturating_add(*nanos))
    }

    /// Returns the share of a kind, 0 to 1.
    pub fn share(&self, kind: K) -> f64 {
        self.get(kind) as f64 / self.sum().max(1) as f64
    }

    /// Returns the number of `width` cells that each kind takes in a bar, in the order of
    /// `Kind::ALL`. Together they take the whole width, if there is any time. The largest
    /// remainders are rounded up, so that no bar is too long.
    pub fn cells(&self, width: usize) -> Vec<usize> {
        let sum = u128::from(self.sum());
        let exact = |nanos: u64| u128::from(nanos) * width as u128;
        let parts = &self.nanos[..K::ALL.len().min(KINDS)];
        if sum == 0 {
            return vec![0; parts.len()];
        }
        let mut cells: Vec<usize> = parts
            .iter()
            .map(|&nanos| (exact(nanos) / sum) as usize)
            .collect();
        let mut by_rest: Vec<usize> = (0..parts.len()).collect();
        by_rest.order_by_key(|&index| (std::cmp::Reverse(exact(parts[index]) % sum), index));
        let missing = width.saturating_sub(cells.iter().sum());
        by_rest
            .iter()
            .take(missing)
            .for_each(|&index| cells[index] += 1);
        cells
    }
}

impl Share<Part> {
    /// Returns the time that the kernel took, in nanoseconds: waiting for a CPU, interrupts and
    /// stops.
    pub fn taken(&self) -> u64 {
        [Part::Waited, Part::Hard, Part::Soft, Part::Stopped]
            .into_iter()
            .map(|part| self.get(part))
            .sum()
    }
}

impl Share<CpuUse> {
    /// Returns the time that others than the owner took, in nanoseconds.
    pub fn taken(&self) -> u64 {
        let own = [CpuUse::Owner, CpuUse::Idle, CpuUse::Rest];
        CpuUse::ALL
            .iter()
            .filter(|(part, ..)| !own.contains(part))
            .map(|(part, ..)| self.get(*part))
            .sum()
    }
}

/// Kind of which a time is made up.
pub trait Kind: Copy + PartialEq + 'static {
    /// All kinds in the order in which they are drawn, each with its sign where there is no colour,
    /// and its name.
    const ALL: &'static [(Self, char, &'static str)];
    /// Returns its place in this list.
    fn index(self) -> usize;
}

impl Kind for Phase {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Target, 't', "target"),
        (Self::Buffer, 'b', "buffer"),
        (Self::Data, 'h', "host's data"),
        (Self::Device, 'd', "device"),
        (Self::Reply, 'r', "reply"),
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl Kind for Part {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Own, 'u', "own code"),
        (Self::Calls, 'c', "calls"),
        (Self::Waited, 'W', "waited"),
        (Self::Hard, 'H', "hard irqs"),
        (Self::Soft, 'S', "soft irqs"),
        (Self::Stopped, 'X', "stopped"),
        (Self::Blocked, '.', "blocked"),
    ];

    fn index(self) -> usize {
        // SANITY: the list has each of them (a test checks).
        Self::ALL
            .iter()
            .position(|(part, ..)| *part == self)
            .unwrap_or_default()
    }
}

impl Kind for CpuUse {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Owner, 'o', "owner"),
        (Self::Threads, 'T', "threads"),
        (Self::Work, 'K', "kworkers"),
        (Self::Devices, 'H', "devices"),
        (Self::Soft, 'S', "soft irqs"),
        (Self::Timer, 'C', "timers"),
        (Self::Calls, 'P', "other CPUs"),
        (Self::Rest, '?', "unknown"),
        (Self::Idle, '.', "idle"),
    ];

    fn index(self) -> usize {
        // SANITY: the list has each of them (a test checks).
        Self::ALL
            .iter()
            .position(|(part, ..)| *part == self)
            .unwrap_or_default()
    }
}

/// Limit on the kinds of one share.
pub(super) const KINDS: usize = 9;
