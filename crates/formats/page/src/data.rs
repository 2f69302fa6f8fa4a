//! Data for the scripts of the page: the report as compact JSON, with consecutive numbers as
//! differences.

use std::collections::HashMap;

use serde::Serialize;

use crate::escape::shown;
use crate::heat::HeatMap;
use crate::model::{Activity, Connection, Figures, Group, Lane, LaneStrip, Report, StageFigures};

/// Limit on the names and figures of connections, in bytes.
const MAX_CONNECTION_BYTES: usize = 160_000;
/// Limit on the named requests of the heat map, in bytes.
const MAX_NAMED_REQUEST_BYTES: usize = 140_000;
/// Limit on the names of intruders in the strips of threads, in bytes.
const MAX_INTRUDER_NAME_BYTES: usize = 24_000;
/// Scale of the parts of a lane's column: 1 is a thousandth.
const PARTS: u64 = 1_000;

#[derive(Serialize)]
pub(crate) struct Data<'a> {
    kernel: bool,
    offset: u64,
    span: u64,
    heat: HeatData,
    lanes: LanesData<'a>,
    stages: Vec<(String, String)>,
    groups: Vec<GroupData<'a>>,
    connections: Vec<ConnectionData<'a>>,
    left_out: u64,
}

#[derive(Serialize)]
struct HeatData {
    column: u64,
    columns: u32,
    per_doubling: u32,
    /// Flat triples: columns since the previous one, row, count.
    cells: Vec<u64>,
    seen: Vec<NamedRequestData>,
    whose: Vec<String>,
    holes: Vec<(u64, u64, String)>,
}

/// End, length, name, index in `whose`, index of its waterfall.
type NamedRequestData = (u64, u64, String, Option<usize>, Option<usize>);

#[derive(Serialize)]
struct LanesData<'a> {
    column: u64,
    threads: Vec<LaneData>,
    /// Index of the thread, nanoseconds since the previous one, length, index of the activity,
    /// index in `who`.
    taken: Vec<(usize, u64, u64, usize, usize)>,
    who: Vec<String>,
    activities: Vec<(&'a str, &'a str)>,
}

#[derive(Serialize)]
struct LaneData {
    name: String,
    /// For each activity, flat pairs: columns since the previous one, thousandths. The rest is
    /// running time.
    shares: Vec<Vec<u64>>,
}

#[derive(Serialize)]
struct FiguresData<'a> {
    n: u64,
    mean: u64,
    p: [u64; 4],
    max: u64,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    curve: &'a [u64],
}

/// Index of a stage in [`Data::stages`], and its figures.
type StageData<'a> = (usize, FiguresData<'a>);

#[derive(Serialize)]
struct GroupData<'a> {
    name: String,
    first: String,
    prefix: char,
    whole: FiguresData<'a>,
    unfinished: u64,
    stages: Vec<StageData<'a>>,
}

#[derive(Serialize)]
struct ConnectionData<'a> {
    name: Option<String>,
    group: usize,
    whole: FiguresData<'a>,
    unfinished: u64,
    /// Index of the stage, and its share.
    most: Option<(usize, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excluded: Option<String>,
    /// Kernel time, minimum and maximum, and the total length of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<(u64, u64, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stages: Vec<StageData<'a>>,
}

/// Names of stages without duplicates.
#[derive(Default)]
struct Stages(Vec<(String, String)>);

impl Stages {
    fn place(&mut self, from: &str, to: &str) -> usize {
        let known = self
            .0
            .iter()
            .position(|(a, b)| (&**a, &**b) == (&*shown(from), &*shown(to)));
        known.unwrap_or_else(|| {
            self.0
                .push((shown(from).into_owned(), shown(to).into_owned()));
            self.0.len() - 1
        })
    }

    fn data<'a>(&mut self, stages: &'a [StageFigures]) -> Vec<StageData<'a>> {
        stages
            .iter()
            .map(|stage| (self.place(&stage.from, &stage.to), figures(&stage.figures)))
            .collect()
    }
}

fn figures(of: &Figures) -> FiguresData<'_> {
    FiguresData {
        n: of.count,
        mean: of.mean,
        p: of.quantiles,
        max: of.max,
        curve: &of.curve,
    }
}

/// Returns the size of a text in the page, in bytes: some characters are escaped twice there.
fn size(text: &str) -> usize {
    let of = |c: char| match c {
        '<' | '>' | '&' => "\\u003c".len(),
        '"' | '\\' => 2,
        c => c.len_utf8(),
    };
    text.chars().map(of).sum()
}

impl<'a> Data<'a> {
    pub(crate) fn from_report(report: &'a Report) -> Self {
        let mut stages = Stages::default();
        let groups = report
            .groups
            .iter()
            .map(|group| group_data(group, &mut stages))
            .collect();
        let mut connections = Vec::new();
        let mut room = MAX_CONNECTION_BYTES;
        for connection in &report.connections {
            let size = 190
                + connection
                    .name
                    .as_deref()
                    .map_or(0, |name| size(&shown(name)))
                + 100 * connection.stages.len();
            let Some(left) = room.checked_sub(size) else {
                break;
            };
            room = left;
            connections.push(connection_data(connection, &mut stages));
        }
        let left_out = ((report.connections.len() - connections.len()) as u64)
            .saturating_add(report.connections_left_out);
        Self {
            kernel: report.has_kernel,
            offset: report.offset,
            span: report.span,
            heat: heat(&report.heat, report),
            lanes: lanes(&report.lanes),
            stages: stages.0,
            groups,
            connections,
            left_out,
        }
    }
}

fn group_data<'a>(group: &'a Group, stages: &mut Stages) -> GroupData<'a> {
    GroupData {
        name: shown(&group.name).into_owned(),
        first: shown(&group.first).into_owned(),
        prefix: group.prefix,
        whole: figures(&group.whole),
        unfinished: group.unfinished,
        stages: stages.data(&group.stages),
    }
}

fn connection_data<'a>(connection: &'a Connection, stages: &mut Stages) -> ConnectionData<'a> {
    let Connection {
        name,
        group,
        whole,
        unfinished,
        summary,
        lost,
        stages: own,
    } = connection;
    ConnectionData {
        name: name.as_deref().map(|name| shown(name).into_owned()),
        group: *group,
        whole: figures(whole),
        unfinished: *unfinished,
        most: summary
            .most
            .as_ref()
            .map(|(from, to, share)| (stages.place(from, to), (share * 1e3).round() / 1e3)),
        excluded: summary
            .excluded
            .as_deref()
            .map(|excluded| shown(excluded).into_owned()),
        lost: lost.map(|((least, most), of)| (least, most, of)),
        stages: stages.data(own),
    }
}

fn heat(map: &HeatMap, report: &Report) -> HeatData {
    let mut cells = Vec::with_capacity(map.cells.len() * 3);
    let mut before = 0;
    for cell in &map.cells {
        cells.extend([
            u64::from(cell.column - before),
            u64::from(cell.row),
            cell.count,
        ]);
        before = cell.column;
    }
    let waterfall = |seen: &crate::heat::NamedRequest| {
        let matches = |it: &crate::model::Waterfall| {
            it.name == seen.name
                && it.length == seen.length
                && it
                    .at
                    .saturating_add(it.length)
                    .abs_diff(seen.end.saturating_add(report.offset))
                    < 2
        };
        report.waterfalls.iter().position(matches)
    };
    let (mut seen, mut whose, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    let mut room = MAX_NAMED_REQUEST_BYTES;
    // The slowest requests come first.
    for it in &map.seen {
        let name = shown(&it.name).into_owned();
        let owner = it
            .whose
            .and_then(|place| Some((place, shown(map.whose.get(place)?))));
        let new = owner
            .as_ref()
            .filter(|(place, _)| !places.contains_key(place))
            .map_or(0, |(_, owner)| size(owner) + 3);
        let Some(left) = room.checked_sub(size(&name) + new + 36) else {
            break;
        };
        room = left;
        let owner = owner.map(|(place, owner)| {
            *places.entry(place).or_insert_with(|| {
                whose.push(owner.into_owned());
                whose.len() - 1
            })
        });
        seen.push((it.end, it.length, name, owner, waterfall(it)));
    }
    HeatData {
        column: map.column,
        columns: map.columns,
        per_doubling: map.per_doubling,
        cells,
        seen,
        whose,
        holes: map
            .holes
            .iter()
            .map(|hole| (hole.at, hole.length, shown(&hole.why).into_owned()))
            .collect(),
    }
}

fn lanes(strip: &LaneStrip) -> LanesData<'_> {
    let mut who: Vec<String> = Vec::new();
    let mut before = 0;
    let mut taken = Vec::new();
    let mut room = MAX_INTRUDER_NAME_BYTES;
    for it in &strip.taken {
        let what = shown(&it.what);
        let place = match who.iter().position(|known| *known == what) {
            Some(place) => place,
            // The column includes it without a name.
            None if size(&what) > room => continue,
            None => {
                room -= size(&what);
                who.push(what.into_owned());
                who.len() - 1
            }
        };
        let activity = Activity::ALL
            .iter()
            .position(|activity| *activity == it.activity)
            .unwrap_or_default();
        taken.push((
            it.lane,
            it.at.saturating_sub(before),
            it.length,
            activity,
            place,
        ));
        before = it.at;
    }
    let threads = strip
        .lanes
        .iter()
        .map(|lane| lane_data(lane, strip.column))
        .collect();
    let activities = Activity::ALL
        .iter()
        .map(|activity| (activity.key(), activity.label()))
        .collect();
    LanesData {
        column: strip.column,
        threads,
        taken,
        who,
        activities,
    }
}

fn lane_data(lane: &Lane, column: u64) -> LaneData {
    let shares = (0..Activity::ALL.len()).map(|activity| {
        let (mut sparse, mut before) = (Vec::new(), 0);
        for (at, sums) in (0u64..).zip(&lane.columns) {
            let share = u128::from(sums[activity]) * u128::from(PARTS) / u128::from(column.max(1));
            let share = u64::try_from(share).unwrap_or(PARTS).min(PARTS);
            if share > 0 && Activity::ALL[activity] != Activity::Ran {
                sparse.extend([at - before, share]);
                before = at;
            }
        }
        sparse
    });
    LaneData {
        name: shown(&lane.name).into_owned(),
        shares: shares.collect(),
    }
}
