//! Times of the last minute.

use crate::Histogram;

/// Number of turns in a minute: reports cover three to four of them.
pub const TURNS: usize = 4;

/// Times of the last [`TURNS`] turns, including the present one.
#[derive(Clone, Debug, Default)]
pub struct RecentTimes {
    turns: [Histogram; TURNS],
    at: usize,
}

impl RecentTimes {
    /// Counts a time, in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.turns[self.at].add(nanos);
    }

    /// Begins the next turn, and drops the oldest one.
    pub fn turn(&mut self) {
        self.at = (self.at + 1) % TURNS;
        // Its memory is freed with it: it may have been large once.
        self.turns[self.at] = Histogram::default();
    }

    /// Returns all times.
    pub fn all(&self) -> Histogram {
        let mut all = Histogram::default();
        self.turns.iter().for_each(|turn| all.merge(turn));
        all
    }

    /// Returns the times of the newest turns, up to that number, including the present one.
    pub fn newest(&self, turns: usize) -> Histogram {
        let mut all = Histogram::default();
        (0..turns.min(TURNS)).for_each(|age| all.merge(&self.turns[self.before(age)]));
        all
    }

    /// Adds the times of another one, turn by turn: both must end their turns at the same time.
    pub fn merge(&mut self, other: &Self) {
        for age in 0..TURNS {
            let to = self.before(age);
            self.turns[to].merge(&other.turns[other.before(age)]);
        }
    }

    /// Returns the index of the turn that ended that number of turns ago; 0 is the present one.
    fn before(&self, age: usize) -> usize {
        (self.at + TURNS - age % TURNS) % TURNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_later_it_is_forgotten() {
        let mut recent = RecentTimes::default();
        recent.add(1000);
        for turn in 1..TURNS {
            recent.turn();
            recent.add(500);
            assert_eq!(
                (recent.all().count(), recent.all().max()),
                (1 + turn as u64, 1000)
            );
        }
        recent.turn();
        assert_eq!(
            (recent.all().count(), recent.all().max()),
            (TURNS as u64 - 1, 500)
        );
        // This one began later, and so has its turns at other places.
        let mut other = RecentTimes::default();
        other.add(7);
        recent.turn();
        other.turn();
        other.add(9);
        recent.merge(&other);
        assert_eq!(
            (
                recent.newest(1).max(),
                recent.newest(2).count(),
                recent.newest(9)
            ),
            (9, 2, recent.all())
        );
    }
}
