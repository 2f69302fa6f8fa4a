//! The settings that are chained on [`TraceBuilder::new`]: rate, sizes and counts.

use super::TraceBuilder;

impl TraceBuilder {
    /// Sets the ticks per second.
    #[must_use]
    pub fn tsc_rate(mut self, ticks_per_second: u64) -> Self {
        self.tsc_rate = ticks_per_second;
        self
    }

    /// Sets the number of slots of each lcore's ring.
    ///
    /// # Panics
    /// If it is not a power of two.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        assert!(
            slots.is_power_of_two(),
            "{slots} slots: SPDK's rings have a power of two"
        );
        self.slots = slots;
        self
    }

    /// Sets the tsc before which the user cleared the trace (era F).
    ///
    /// # Panics
    /// If the era has no such field.
    #[must_use]
    pub fn clear_tsc(mut self, tsc: u64) -> Self {
        self.only_sectioned("clear_tsc");
        self.clear_tsc = tsc;
        self
    }

    /// Sets the number of tracepoint ids, which also marks continuations (era F).
    ///
    /// # Panics
    /// If the era's number is fixed, or the number does not fit its field.
    #[must_use]
    pub fn tpoint_count(mut self, count: usize) -> Self {
        self.only_sectioned("the number of tracepoints");
        assert!(
            (1..=0xffff).contains(&count),
            "{count} tracepoints do not fit a u16"
        );
        self.tpoint_count = count;
        self
    }

    /// Sets the length of the table of history offsets (era F); by default it ends at the last lcore.
    ///
    /// # Panics
    /// If the era's number is fixed, or the number does not fit its field.
    #[must_use]
    pub fn lcore_count(mut self, count: usize) -> Self {
        self.only_sectioned("the number of lcores");
        assert!(
            (1..=0xffff).contains(&count),
            "{count} lcores do not fit a u16"
        );
        self.lcore_count = Some(count);
        self
    }

    /// Sets the number of owners that the file has room for (eras D, E and F); SPDK's own 16,384
    /// take 2 MiB.
    ///
    /// # Panics
    /// If the era has no owners, or the number does not fit its field.
    #[must_use]
    pub fn owner_count(mut self, count: usize) -> Self {
        assert!(
            self.spec().owners.is_some(),
            "era {:?} has no owners",
            self.era
        );
        assert!(count <= 0xffff, "{count} owners do not fit a u16");
        self.owner_count = count;
        self
    }

    /// Sets the size of an owner's description, in bytes (eras D, E and F); SPDK's own is 119.
    ///
    /// # Panics
    /// If the era has no owners, or the number does not fit its field.
    #[must_use]
    pub fn owner_description_size(mut self, size: usize) -> Self {
        assert!(
            self.spec().owners.is_some(),
            "era {:?} has no owners",
            self.era
        );
        assert!(
            (1..=0xffff).contains(&size),
            "a description of {size} bytes is not possible"
        );
        self.description_size = size;
        self
    }

    fn only_sectioned(&self, what: &str) {
        assert!(
            self.spec().header.is_none(),
            "{what} can only be set in era F, not in {:?}",
            self.era
        );
    }
}
