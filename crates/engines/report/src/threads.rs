//! Activities of threads: in total, over time, and the intruders that ran instead of the threads
//! that serve requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

use ordering::Order as _;
use page::{AbsenceSpan, Activity as Kind, Budget, Intruder, Lane, LaneStrip};
use scene::{Activity, BootNanos, Cpu, EventKind, Interval, KernelEvent, Tid};
use timeline::source::Source;
use timeline::words;

use super::build::Axis;

/// Limit on the columns of a lane.
const COLUMNS: u64 = 360;
/// Limit on the columns of all lanes together.
const ALL_COLUMNS: u64 = 2_160;
/// Limit on the threads with a lane.
const MAX_LANES: usize = 16;
/// Limit on the threads with a bar.
const MAX_BUDGETS: usize = 24;
/// Limit on the absences kept.
const MAX_ABSENCES: usize = 1_200;
/// Limit on the rows of the table of intruders.
const MAX_INTRUDER_ROWS: usize = 20;
/// Limit on the intruders collected, by thread and CPU.
const MAX_INTRUDERS: usize = 65_536;

/// Collector of the activities.
#[derive(Default)]
pub(crate) struct Threads {
    axis: Option<Axis>,
    column: u64,
    /// Threads that serve requests, in the order of their lcores.
    served: Vec<Tid>,
    each: BTreeMap<Tid, Thread>,
    rivals: HashMap<(Activity, Option<Cpu>), IntruderStats>,
    /// Longest absences, the shortest on top.
    taken: BinaryHeap<Reverse<Absence>>,
}

#[derive(Default)]
struct Thread {
    sums: [u64; 8],
    cpus: BTreeSet<u32>,
    /// CPU of the thread from each time on; the first entry may be from before the present
    /// interval.
    moves: VecDeque<(BootNanos, Cpu)>,
    lane: Option<Vec<[u64; 8]>>,
}

#[derive(Default)]
struct IntruderStats {
    seen: BootNanos,
    times: u64,
    total: u64,
    longest: u64,
    victims: BTreeSet<Tid>,
}

/// Key of a row of the table: name, activity, and CPU.
type RowKey = (String, Kind, Option<u32>);

/// Absence of a thread from its CPU, ordered by length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Absence {
    length: u64,
    from: Reverse<BootNanos>,
    lane: usize,
    activity: UnorderedActivity,
}

/// Activity of an absence, ignored in its order.
#[derive(Clone, Copy)]
struct UnorderedActivity(Activity, Option<Cpu>);

impl PartialEq for UnorderedActivity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for UnorderedActivity {}
impl PartialOrd for UnorderedActivity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for UnorderedActivity {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// Result for the page.
pub(crate) struct ThreadCharts {
    pub(crate) lanes: LaneStrip,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) budgets_left_out: u64,
    pub(crate) intruders: Vec<Intruder>,
    pub(crate) intruders_left_out: u64,
}

/// Returns the kind of an activity, which has its own colour.
pub(crate) fn kind(activity: Activity) -> Kind {
    match activity {
        Activity::Runs => Kind::Ran,
        Activity::Calls(_) => Kind::Call,
        Activity::Waits(_) => Kind::Preempted,
        Activity::Woken(_) => Kind::Woken,
        Activity::Interrupted(_) => Kind::Interrupt,
        Activity::Stopped(_) => Kind::Stopped,
        Activity::Blocked { .. } | Activity::Ended => Kind::Blocked,
        Activity::Unknown => Kind::Unknown,
    }
}

fn place(kind: Kind) -> usize {
    Kind::ALL
        .iter()
        .position(|it| *it == kind)
        .unwrap_or_default()
}

impl Threads {
    pub(crate) fn new(source: &Source, axis: Axis) -> Self {
        let mut lcores: Vec<_> = source.lcores.iter().collect();
        lcores.order();
        let mut served: Vec<Tid> = Vec::new();
        for (_, tid) in lcores {
            if !served.contains(tid) {
                served.push(*tid);
            }
        }
        let known = source
            .kernel
            .as_ref()
            .map(|kernel| kernel.threads.clone())
            .unwrap_or_default();
        // They are known from the start, because their intervals come later than the events that
        // show their CPUs.
        let each = known.iter().map(|tid| (*tid, Thread::default())).collect();
        if served.is_empty() {
            served = known;
        }
        served.truncate(MAX_LANES);
        let columns = (ALL_COLUMNS / served.len().max(1) as u64).min(COLUMNS);
        let column = axis.span().div_ceil(columns).max(1);
        Self {
            axis: Some(axis),
            column,
            served,
            each,
            ..Self::default()
        }
    }

    /// Follows the CPU of each thread.
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        let (tid, cpu) = match event.kind {
            EventKind::Switch { next, .. } => (next, event.cpu),
            EventKind::Wake { tid, on, .. } => (tid, on),
            EventKind::Migrate { tid, to, .. } => (tid, to),
            EventKind::Found { tid, .. }
            | EventKind::Begin { tid, .. }
            | EventKind::CallEnter { tid, .. } => (tid, event.cpu),
            EventKind::End { .. }
            | EventKind::CallExit { .. }
            | EventKind::StopSignal { .. }
            | EventKind::Lost { .. }
            | EventKind::Unseen { .. }
            | EventKind::Inside { .. } => return,
        };
        // Other threads get no entry.
        let Some(thread) = self.each.get_mut(&tid) else {
            return;
        };
        if thread.moves.back().is_none_or(|(_, last)| *last != cpu) {
            thread.moves.push_back((event.at, cpu));
        }
    }

    pub(crate) fn interval(&mut self, tid: Tid, interval: Interval) {
        let Some(axis) = self.axis else { return };
        let lane = self.served.iter().position(|served| *served == tid);
        let thread = self.each.entry(tid).or_default();
        let (from, to) = (axis.at(interval.from), axis.at(interval.to));
        if from >= to {
            return;
        }
        let cpu = thread.cpu(interval.from);
        let kind = kind(interval.activity);
        thread.sums[place(kind)] += to - from;
        if kind == Kind::Ran
            && let Some(cpu) = cpu
        {
            thread.cpus.insert(cpu.0);
        }
        let Some(lane) = lane else { return };
        thread.draw(self.column, (from, to), place(kind));
        if interval.activity.is_taken() {
            self.rival(tid, interval, cpu);
            let absence = Absence {
                length: to - from,
                from: Reverse(interval.from),
                lane,
                activity: UnorderedActivity(interval.activity, cpu),
            };
            if self.taken.len() < MAX_ABSENCES
                || self
                    .taken
                    .peek()
                    .is_some_and(|Reverse(least)| absence > *least)
            {
                self.taken.push(Reverse(absence));
                if self.taken.len() > MAX_ABSENCES {
                    self.taken.pop();
                }
            }
        }
    }

    fn rival(&mut self, tid: Tid, interval: Interval, cpu: Option<Cpu>) {
        let key = (interval.activity, cpu);
        if self.rivals.len() >= MAX_INTRUDERS && !self.rivals.contains_key(&key) {
            return;
        }
        let length = interval.length();
        let rival = self.rivals.entry(key).or_insert_with(|| IntruderStats {
            seen: interval.from,
            ..IntruderStats::default()
        });
        rival.times += 1;
        rival.total = rival.total.saturating_add(length);
        rival.longest = rival.longest.max(length);
        rival.victims.insert(tid);
    }

    /// Returns the collected data, with names.
    pub(crate) fn finish(mut self, source: &Source, axis: Axis) -> ThreadCharts {
        let (intruders, intruders_left_out) = self.intruders(source);
        let served = std::mem::take(&mut self.served);
        let lanes = served.iter().map(|tid| Lane {
            name: source.thread(*tid, axis.begin),
            columns: self
                .each
                .get_mut(tid)
                .and_then(|thread| thread.lane.take())
                .unwrap_or_default(),
        });
        let lanes: Vec<Lane> = lanes.collect();
        let has_any = lanes.iter().any(|lane| !lane.columns.is_empty());
        let taken = std::mem::take(&mut self.taken).into_vec().into_iter();
        let mut taken: Vec<AbsenceSpan> = taken
            .map(|Reverse(absence)| absence.named(source, axis))
            .collect();
        taken.order_by_key(|taken| (taken.at, taken.lane));
        let lanes = LaneStrip {
            column: self.column,
            lanes: if has_any { lanes } else { Vec::new() },
            taken,
        };
        let (budgets, budgets_left_out) = self.budgets(source, &served, axis);
        ThreadCharts {
            lanes,
            budgets,
            budgets_left_out,
            intruders,
            intruders_left_out,
        }
    }

    /// Returns the intruders. Threads of one name on one CPU count as one: a compiler has many.
    fn intruders(&mut self, source: &Source) -> (Vec<Intruder>, u64) {
        let mut named: BTreeMap<RowKey, (Intruder, BTreeSet<Tid>)> = BTreeMap::new();
        for ((activity, cpu), rival) in self.rivals.drain() {
            let (name, kind) = (
                words::culprit(source, activity, None, rival.seen),
                kind(activity),
            );
            let cpu = cpu.map(|cpu| cpu.0);
            let (all, victims) = named.entry((name.clone(), kind, cpu)).or_insert_with(|| {
                (
                    Intruder {
                        name,
                        activity: kind,
                        cpu,
                        ..Intruder::default()
                    },
                    BTreeSet::new(),
                )
            });
            all.times += rival.times;
            all.total = all.total.saturating_add(rival.total);
            all.longest = all.longest.max(rival.longest);
            victims.extend(rival.victims);
        }
        let mut intruders: Vec<Intruder> = Vec::new();
        for (mut intruder, victims) in named.into_values() {
            intruder.victims = victims
                .into_iter()
                .map(|tid| source.thread(tid, BootNanos::default()))
                .collect();
            intruders.push(intruder);
        }
        intruders.order_by_key(|it| (Reverse((it.total, it.longest)), it.name.clone(), it.cpu));
        let left_out = intruders.len().saturating_sub(MAX_INTRUDER_ROWS) as u64;
        intruders.truncate(MAX_INTRUDER_ROWS);
        (intruders, left_out)
    }

    /// Returns the budgets: threads that serve requests first, then those with the most CPU time.
    fn budgets(&self, source: &Source, served: &[Tid], axis: Axis) -> (Vec<Budget>, u64) {
        let used = |thread: &Thread| thread.sums[place(Kind::Ran)] + thread.sums[place(Kind::Call)];
        let did = |(_, thread): &(&Tid, &Thread)| thread.sums.iter().any(|sum| *sum > 0);
        let mut threads: Vec<(&Tid, &Thread)> = self.each.iter().filter(did).collect();
        threads.order_by_key(|(tid, thread)| {
            let lane = served
                .iter()
                .position(|served| served == *tid)
                .unwrap_or(usize::MAX);
            (lane, Reverse(used(thread)), **tid)
        });
        let left_out = threads.len().saturating_sub(MAX_BUDGETS) as u64;
        let budgets = threads
            .into_iter()
            .take(MAX_BUDGETS)
            .map(|(tid, thread)| Budget {
                name: source.thread(*tid, axis.begin),
                tid: tid.0,
                cpus: thread.cpus.iter().copied().collect(),
                sums: thread.sums,
            });
        (budgets.collect(), left_out)
    }
}

impl Thread {
    /// Returns the CPU at this time, and drops earlier ones: they are not requested again.
    fn cpu(&mut self, at: BootNanos) -> Option<Cpu> {
        while self.moves.get(1).is_some_and(|(since, _)| *since <= at) {
            self.moves.pop_front();
        }
        self.moves.front().map(|(_, cpu)| *cpu)
    }

    /// Spreads an interval over the columns of its lane.
    fn draw(&mut self, column: u64, (from, to): (u64, u64), kind: usize) {
        let lane = self.lane.get_or_insert_with(Vec::new);
        let last = ((to - 1) / column) as usize;
        if lane.len() <= last {
            lane.resize(last + 1, [0; 8]);
        }
        for (at, sums) in lane
            .iter_mut()
            .enumerate()
            .take(last + 1)
            .skip((from / column) as usize)
        {
            let begin = at as u64 * column;
            sums[kind] += to.min(begin + column) - from.max(begin);
        }
    }
}

impl Absence {
    fn named(self, source: &Source, axis: Axis) -> AbsenceSpan {
        let (Reverse(from), UnorderedActivity(activity, cpu)) = (self.from, self.activity);
        let on = cpu.map_or_else(String::new, |cpu| format!(" on CPU {}", cpu.0));
        let what = format!("{}{on}", words::did(source, activity, from));
        AbsenceSpan {
            lane: self.lane,
            at: axis.at(from),
            length: self.length,
            activity: kind(activity),
            what,
        }
    }
}
