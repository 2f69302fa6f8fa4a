//! Times in which the ring of a busy thread has no record: the thread may have been away, while
//! requests waited unread.
//!
//! Without events of the kernel a trace shows no more of it, and the hosts may as well have sent
//! nothing. So only rings are named that are written all the time otherwise.

use spdk_trace::{Lcore, Record, TickRate, Ticks};

use crate::away::MIN_AWAY;

/// Minimum length of a silence in mean times between two records: a shorter one is an ordinary
/// pause.
const MIN_SILENCE_FACTOR: u64 = 100;
/// Denominator of the largest part of the ring's time in silences: a thread that is idle for longer
/// is not busy.
const MAX_PART: u64 = 2;

/// Silences of the rings of a trace, as far as it was read.
#[derive(Clone, Debug)]
pub struct Silences {
    rings: Vec<Option<Ring>>,
    at_least: u64,
}

/// Ring of one lcore.
#[derive(Clone, Debug)]
struct Ring {
    thread: String,
    first: Ticks,
    last: Ticks,
    records: u64,
    count: u64,
    /// Sum of the silences, in ticks.
    silent: u64,
    /// Longest silence, in ticks.
    longest: u64,
}

/// Silences of one thread, which is busy otherwise. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Lcore of the ring.
    pub lcore: Lcore,
    /// Name of the thread, as the trace has it; may be empty.
    pub thread: String,
    /// Number of silences.
    pub count: u64,
    /// Sum of the silences.
    pub sum: u64,
    /// Longest silence.
    pub longest: u64,
    /// Mean time between two records otherwise.
    pub mean: u64,
}

impl Silences {
    /// Looks for silences of 10 ms and more in a trace with this tick rate.
    pub fn new(rate: TickRate) -> Self {
        Self {
            rings: Vec::new(),
            at_least: rate.ticks(MIN_AWAY).0,
        }
    }

    /// Takes the next record: those of an lcore in the order of time.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        let Some(Some(ring)) = self.rings.get_mut(usize::from(record.lcore.0)) else {
            return self.first(record);
        };
        ring.records += 1;
        let gap = record.tsc.0.saturating_sub(ring.last.0);
        if gap >= self.at_least {
            ring.silence(gap, record);
        }
        ring.last = record.tsc;
    }

    #[cold]
    fn first(&mut self, record: &Record<'_>) {
        let lcore = usize::from(record.lcore.0);
        if self.rings.len() <= lcore {
            self.rings.resize(lcore + 1, None);
        }
        let (thread, at) = (record.thread_name.to_owned(), record.tsc);
        self.rings[lcore] = Some(Ring {
            thread,
            first: at,
            last: at,
            records: 1,
            count: 0,
            silent: 0,
            longest: 0,
        });
    }

    /// Returns the silences of threads that are busy otherwise, by lcore.
    pub fn finish(self, rate: TickRate) -> Vec<Silence> {
        let nanos = |ticks| rate.nanos(Ticks(ticks)).0;
        let of_busy = |(lcore, ring): (u16, Option<Ring>)| {
            let Ring {
                thread,
                first,
                last,
                records,
                count,
                silent,
                longest,
            } = ring?;
            let span = last.0.saturating_sub(first.0);
            let mean = (span - silent.min(span)) / records;
            let is_busy = silent.saturating_mul(MAX_PART) <= span
                && mean.saturating_mul(MIN_SILENCE_FACTOR) <= self.at_least;
            let lcore = Lcore(lcore);
            let (sum, longest, mean) = (nanos(silent), nanos(longest), nanos(mean));
            (count > 0 && is_busy).then_some(Silence {
                lcore,
                thread,
                count,
                sum,
                longest,
                mean,
            })
        };
        (0..).zip(self.rings).filter_map(of_busy).collect()
    }
}

impl Ring {
    #[cold]
    fn silence(&mut self, gap: u64, record: &Record<'_>) {
        // Lost records were written then.
        if record.lost_since.is_none() {
            self.count += 1;
            self.silent += gap;
            self.longest = self.longest.max(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use spdk_trace::{Args, Object, OwnerLabel, Tpoint};

    use super::*;

    /// Returns the silences of one lcore's records with these times between them, in microseconds.
    fn silences(gaps: &[u64], lost_before: Option<usize>) -> Vec<Silence> {
        let (rate, mut at) = (TickRate::ticks_as_micros(), 0);
        let tpoint = Tpoint {
            id: 0,
            name: "A".to_owned(),
            owner_type: 0,
            owner_prefix: None,
            object_type: 0,
            object_prefix: None,
            new_object: false,
            args: Vec::new(),
            relations: Vec::new(),
        };
        let mut silences = Silences::new(rate);
        for (index, gap) in gaps.iter().enumerate() {
            at += gap;
            silences.record(&Record {
                lcore: Lcore(3),
                thread_name: "reactor_3",
                tsc: Ticks(at),
                tpoint: &tpoint,
                size: 0,
                poller: None,
                owner: None,
                owner_since: None,
                label: OwnerLabel::None,
                object: Object::None,
                related: None,
                args: Args::none(),
                annotations: None,
                lost_since: (lost_before == Some(index)).then_some(Ticks(0)),
            });
        }
        silences.finish(rate)
    }

    #[test]
    fn a_busy_ring_that_falls_silent_is_named_and_an_idle_one_is_not() {
        let busy = vec![10; 10_000];
        let stalls = [
            &busy[..],
            &[40_000],
            &busy,
            &[9_000],
            &busy,
            &[12_000],
            &busy,
        ]
        .concat();
        let ms = 1_000_000;
        let found = silences(&stalls, None);
        let expected = Silence {
            lcore: Lcore(3),
            thread: "reactor_3".to_owned(),
            count: 2,
            sum: 52 * ms,
            longest: 40 * ms,
            mean: found[0].mean,
        };
        assert_eq!(found, [expected]);
        assert!((10_000..11_000).contains(&found[0].mean), "{found:?}");
        // Where slots were lost, something was written.
        assert_eq!(
            silences(&[&busy[..], &[40_000], &busy].concat(), Some(10_000)),
            []
        );
        // It is idle for most of its time, or writes seldom.
        assert_eq!(silences(&[&busy[..], &[400_000], &busy].concat(), None), []);
        assert_eq!(
            silences(
                &[&vec![200; 10_000][..], &[40_000], &vec![200; 10_000]].concat(),
                None
            ),
            []
        );
        assert_eq!(silences(&busy, None), []);
    }
}
