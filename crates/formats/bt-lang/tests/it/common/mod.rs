//! Random trees with every kind of node that the parser can return.

pub(crate) mod expr;
pub(crate) mod item;
pub(crate) mod stmt;

use bt_lang::ast::{Name, Program, Span};

/// Random numbers from a seed (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(make(self)) } else { None }
    }

    fn name(&mut self) -> Name {
        let text = self.pick(&["a", "foo", "x1", "_y", "task_struct", "B", "if_x", "iff"]);
        Name::new(text, Span::default())
    }

    /// Generates a program whose nodes nest up to `depth`.
    pub(crate) fn program(&mut self, depth: u32) -> Program {
        let header = if self.below(4) == 0 {
            Some(Name::new("#!/usr/bin/env bpftrace", Span::default()))
        } else {
            None
        };
        let items = (0..=self.below(4)).map(|_| self.item(depth)).collect();
        Program {
            header,
            items,
            ..Program::default()
        }
    }
}
