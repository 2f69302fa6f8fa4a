//! The end of a session: detaching, `end` probes, maps, losses. And benchmarks, which attach
//! nothing.

use std::time::{Duration, Instant};

use bpf_program::event::RING;
use bt_abi::lost::{LOST, LostCounters};
use bt_abi::wire::{ArrayIndex, WrongSize, read_value};
use bt_abi::{ActionKind, Attach, PrintTo};
use bt_runtime::table::{PrintArgs, Table};

use super::{Events, Session};
use crate::event::{Event, RawEvent};
use crate::{Error, maps};

/// Losses in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Events for which the ring buffer had no room.
    pub lost: u64,
    /// Hits that were left out, since programs interrupted one another too deeply.
    pub too_deep: u64,
    /// Hits that the kernel skipped, since another program was running on that CPU.
    pub skipped: u64,
    /// Events that were handed out behind later ones, since they came too late.
    pub late: u64,
}

/// Results of a session.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SessionResult {
    /// Events that had not been handed out, with those of `end` probes.
    pub events: Vec<Event>,
    /// Maps of the script, by name.
    pub maps: Vec<Table>,
    /// Losses.
    pub totals: Totals,
    /// Status that the script gave to `exit()`; 0 if it gave none.
    pub exit_status: u8,
}

impl SessionResult {
    /// Returns the map of that name, such as `@calls`; `None` if the script has no such map.
    pub fn map(&self, name: &str) -> Option<&Table> {
        self.maps.iter().find(|map| map.name == name)
    }
}

/// Result of a `bench:` probe.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Benchmark {
    /// Name of the benchmark.
    pub name: String,
    /// Average time of a run in nanoseconds. A run is a system call of ours, which is counted.
    pub average: u64,
    /// Number of runs.
    pub runs: u64,
}

/// Result of a `test:` probe.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TestResult {
    /// Name of the test.
    pub name: String,
    /// True if it passed.
    pub passed: bool,
    /// Time of the run with its system call, in nanoseconds.
    pub nanos: u64,
    /// Events that it sent, with all its output.
    pub events: Vec<Event>,
}

impl Session {
    /// Stops the probes that the kernel can stop without a wait: those of perf events and raw
    /// tracepoints. A script that calls `system()` keeps all of them, since its commands may want
    /// to see the programs. Takes no time.
    pub fn disable(&mut self) {
        if !self
            .script
            .actions
            .iter()
            .any(|action| matches!(action.kind, ActionKind::System { .. }))
        {
            self.bpf.disable();
        }
    }

    /// Detaches the probes that could disturb `end` probes and maps, and takes the last events,
    /// which are then [pending](Self::pending). In a script without `end` probes, uprobes and
    /// kprobes stay until the session is dropped: nobody sees the difference, and detaching them
    /// takes the kernel a while.
    pub fn detach(&mut self) {
        if !self.bpf.disable() && self.has_end() {
            self.bpf.close();
        }
        let mut rest = Vec::new();
        if let Some(reader) = self.reader.take() {
            reader.finish(|batch| rest.extend(batch));
        }
        let taken = self.take(rest);
        self.keep(taken);
        self.is_over = true;
    }

    /// Runs `end` probes, and hands out their output. Once, after [`detach`](Self::detach).
    pub fn end(&mut self) -> Result<Events<'_>, Error> {
        self.first_exit = self.exit.take();
        if self.has_end() {
            self.run_all(|attach| matches!(attach, Attach::End))?;
            let events = self.bpf.drain_now(RING, RawEvent::copy)?;
            self.take(events)?;
        }
        Ok(Events::last(self))
    }

    /// Returns true if the settings ask for the script's maps to be printed at the end.
    pub fn prints_maps(&self) -> bool {
        self.script.config.print_maps_on_exit
    }

    /// Returns the script's maps as they are now, by name. Each is read on request; unreadable
    /// elements are left out.
    ///
    /// # Errors
    /// Returns [`Error::WrongSize`] for data of a wrong form.
    pub fn maps(&self) -> impl Iterator<Item = Result<Table, Error>> {
        let mut maps: Vec<_> = self.script.maps.iter().collect();
        maps.sort_by(|one, other| one.name.cmp(&other.name));
        maps.into_iter().map(|map| {
            let elements = maps::elements(&self.bpf, map, &*self.observer);
            Ok(Table::from_elements(
                map,
                &elements,
                PrintArgs::default(),
                &self.decoder(),
            )?)
        })
    }

    /// Returns the losses so far.
    ///
    /// # Errors
    /// Returns [`Error::WrongSize`] for data of a wrong form, also if it was found while the last
    /// events were handed out.
    pub fn totals(&self) -> Result<Totals, Error> {
        self.check()?;
        let LostCounters {
            ring_full,
            no_scratch,
        } = self.lost()?;
        let (skipped, late) = (self.bpf.misses(), self.order.late());
        Ok(Totals {
            lost: ring_full,
            too_deep: no_scratch,
            skipped,
            late,
        })
    }

    /// Returns the status that the script gave to `exit()`; 0 if it gave none.
    pub fn exit_status(&self) -> u8 {
        self.exit.or(self.first_exit).unwrap_or_default()
    }

    /// Ends the target's command, if it still runs. Dropping the session does so, too.
    pub fn end_command(&mut self) {
        self.child = None;
    }

    /// Ends the session: detaches, runs `end` probes and reads the maps.
    pub fn finish(mut self) -> Result<SessionResult, Error> {
        self.disable();
        let mut events: Vec<Event> = self.pending().collect();
        self.detach();
        events.extend(self.pending());
        events.extend(self.end()?);
        let maps = self.maps().collect::<Result<_, _>>()?;
        Ok(SessionResult {
            events,
            maps,
            totals: self.totals()?,
            exit_status: self.exit_status(),
        })
    }

    /// Runs each `test:` probe once, in the order of the script. A test passes if it returns or
    /// exits with 0, and nothing fails in it: neither a helper of the kernel, nor by `errorf`.
    pub fn test(&mut self) -> Result<Vec<TestResult>, Error> {
        let tests = self
            .script
            .probes
            .iter()
            .filter_map(|probe| match &probe.attach {
                Attach::Manual {
                    name,
                    is_test: true,
                } => Some((name.clone(), probe.program)),
                _ => None,
            });
        let mut results = Vec::new();
        for (name, program) in tests.collect::<Vec<_>>() {
            let start = Instant::now();
            self.bpf.run(program, &[])?;
            let nanos = start.elapsed().as_nanos() as u64;
            let events = self.bpf.drain_now(RING, RawEvent::copy)?;
            self.take(events)?;
            let events: Vec<Event> = Events::last(self).collect();
            self.check()?;
            let is_error = |event: &Event| {
                matches!(
                    event,
                    Event::Failure(_)
                        | Event::Printf {
                            to: PrintTo::Error,
                            ..
                        }
                )
            };
            let passed = self.exit_status() == 0 && !events.iter().any(is_error);
            // Each test begins anew.
            (self.exit, self.exit_requested) = (None, false);
            results.push(TestResult {
                name,
                passed,
                nanos,
                events,
            });
        }
        Ok(results)
    }

    /// Runs each `bench:` probe until it has taken `least`.
    pub fn benchmark(&self, least: Duration) -> Result<Vec<Benchmark>, Error> {
        let mut benchmarks = Vec::new();
        for probe in &self.script.probes {
            let Attach::Manual {
                name,
                is_test: false,
            } = &probe.attach
            else {
                continue;
            };
            let mut runs = 1_u64;
            let took = loop {
                let start = Instant::now();
                for _ in 0..runs {
                    self.bpf.run(probe.program, &[])?;
                }
                let took = start.elapsed();
                // Its output is not wanted here, and must not fill the ring.
                self.bpf.drain_now(RING, RawEvent::copy)?;
                if took >= least {
                    break took;
                }
                runs *= 2;
            };
            let average = (took.as_nanos() / u128::from(runs)) as u64;
            benchmarks.push(Benchmark {
                name: name.clone(),
                average,
                runs,
            });
        }
        Ok(benchmarks)
    }

    /// Reads the programs' counters of losses.
    fn lost(&self) -> Result<LostCounters, WrongSize> {
        let counted = self.bpf.map(LOST).and_then(|map| {
            map.lookup(&ArrayIndex::default().to_ne_bytes())
                .ok()
                .flatten()
        });
        counted.map_or_else(
            || Ok(LostCounters::default()),
            |bytes| read_value(LOST, &bytes),
        )
    }
}
