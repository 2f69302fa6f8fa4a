//! Processes that a command names, and those that they started meanwhile, as the map of a session
//! has them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bpf_session::Session;
use host::{Pid, proc};

use crate::processes::{PROCESSES, Processes};
use crate::{NamedMap, SchedError};

/// Interval between two looks for processes that have ended.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Processes that programs are for, as a command names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSet {
    /// Numbers of the processes; at least one.
    pub pids: Vec<u32>,
    /// True if the processes that they start belong to them.
    pub children: bool,
}

impl ProcessSet {
    /// Makes the set of one process, without its children.
    pub fn one(pid: u32) -> Self {
        Self {
            pids: vec![pid],
            children: false,
        }
    }

    /// Returns the first process; 0 if there is none.
    pub fn first(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// Returns how programs know the processes: one without children needs no map.
    pub fn known_by(&self) -> Processes {
        match self.pids.as_slice() {
            [] | [_] if !self.children => Processes::One(self.first()),
            _ => Processes::Several {
                children: self.children,
            },
        }
    }

    /// Returns the map of the processes, if the programs have one.
    fn map<'s>(&self, session: &'s Session) -> Result<Option<NamedMap<'s>>, SchedError> {
        match self.known_by() {
            Processes::One(_) => Ok(None),
            Processes::Several { .. } => NamedMap::find(session, PROCESSES).map(Some),
        }
    }

    /// Enters the processes into the map of a session whose programs are not attached yet.
    ///
    /// # Errors
    /// The map cannot be written: there are too many processes, for example.
    pub fn enter(&self, session: &Session) -> Result<(), SchedError> {
        let Some(map) = self.map(session)? else {
            return Ok(());
        };
        self.pids.iter().try_for_each(|&pid| map.put(pid, &0_u64))
    }

    /// Enters the processes that they have started until now, if these belong to them. Once the
    /// programs are attached none is missed: later ones are entered by the program of their start.
    ///
    /// # Errors
    /// The map cannot be written: there are too many processes, for example.
    pub fn enter_children(&self, session: &Session) -> Result<(), SchedError> {
        let Some(map) = self.map(session)?.filter(|_| self.children) else {
            return Ok(());
        };
        for child in host::family::descendants(&self.pids) {
            map.insert(child, &0_u64)?;
        }
        Ok(())
    }

    /// Returns the named processes and, if children belong to them, the processes that they
    /// started, in order. A process whose number was given to another one is left out.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn members(&self, session: &Session) -> Result<Vec<u32>, SchedError> {
        let Some(map) = self.map(session)? else {
            return Ok(self.pids.clone());
        };
        let mut members: Vec<(u32, u64)> = map.pairs()?;
        members.retain(|&(pid, begun)| !is_anothers(pid, begun));
        members.sort_unstable();
        Ok(members.into_iter().map(|(pid, _)| pid).collect())
    }

    /// Returns the processes of the map that have ended, each with its begin as the map has it.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn ended(&self, session: &Session) -> Result<Vec<(u32, u64)>, SchedError> {
        let Some(map) = self.map(session)? else {
            return Ok(Vec::new());
        };
        let mut ended: Vec<(u32, u64)> = map.pairs()?;
        ended.retain(|&(pid, begun)| proc::threads(Pid(pid)).is_empty() || is_anothers(pid, begun));
        Ok(ended)
    }

    /// Removes processes that have ended from the map: their numbers are given again, and others
    /// need the room.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn forget(&self, session: &Session, ended: &[(u32, u64)]) -> Result<(), SchedError> {
        let Some(map) = self.map(session)? else {
            return Ok(());
        };
        ended.iter().try_for_each(|(pid, _)| map.delete(pid))
    }
}

/// Processes of a session's map that had ended at the last look. They are forgotten at the next one:
/// the last events of a thread may come after its end.
#[derive(Debug)]
pub struct EndedProcesses {
    ended: BTreeSet<(u32, u64)>,
    looked: Instant,
}

impl Default for EndedProcesses {
    fn default() -> Self {
        Self {
            ended: BTreeSet::new(),
            looked: Instant::now(),
        }
    }
}

impl EndedProcesses {
    /// Forgets the processes that had ended at the last look, too, if that was a moment ago.
    ///
    /// # Errors
    /// The map cannot be read or written.
    pub fn forget(&mut self, set: &ProcessSet, session: &Session) -> Result<(), SchedError> {
        if self.looked.elapsed() < LOOK_INTERVAL {
            return Ok(());
        }
        self.looked = Instant::now();
        let old = self.ended_before(set.ended(session)?);
        set.forget(session, &old)
    }

    /// Takes the processes of the map that have ended; returns those that had ended at the last look,
    /// too.
    fn ended_before(&mut self, ended: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
        let (old, new): (Vec<_>, Vec<_>) = ended
            .into_iter()
            .partition(|process| self.ended.contains(process));
        self.ended = new.into_iter().collect();
        old
    }
}

/// Returns whether a number belongs to another process than the one that began at `begun` of the
/// boot clock, in nanoseconds (proc_pid_stat(5), field 22). False if `begun` is 0: the time is not
/// known.
fn is_anothers(pid: u32, begun: u64) -> bool {
    let is_other = |ticks| ticks != begun / proc::TICK_NANOS;
    begun > 0
        && host::system::has_boot_time()
        && proc::start_of_living(Pid(pid)).is_some_and(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_needs_no_map() {
        let set = |pids: &[u32], children| ProcessSet {
            pids: pids.to_vec(),
            children,
        };
        assert_eq!(ProcessSet::one(7).known_by(), Processes::One(7));
        for (pids, children) in [(&[7][..], true), (&[7, 8], true), (&[7, 8], false)] {
            assert_eq!(
                set(pids, children).known_by(),
                Processes::Several { children }
            );
        }
    }

    #[test]
    fn a_process_is_forgotten_at_the_second_look_after_its_end() {
        let mut ended = EndedProcesses::default();
        assert_eq!(ended.ended_before(vec![(5, 100)]), []);
        // Another process has the number, and ended as well.
        assert_eq!(ended.ended_before(vec![(5, 200), (6, 0)]), []);
        assert_eq!(ended.ended_before(vec![(5, 200), (7, 0)]), [(5, 200)]);
        assert_eq!(ended.ended_before(vec![(7, 0)]), [(7, 0)]);
    }

    #[test]
    fn a_number_is_anothers_if_its_process_began_at_another_time() {
        let own = std::process::id();
        let begun = proc::start_of_living(Pid(own)).unwrap() * proc::TICK_NANOS;
        assert!(!is_anothers(own, 0) && !is_anothers(own, begun));
        assert!(is_anothers(own, begun + proc::TICK_NANOS));
    }
}
