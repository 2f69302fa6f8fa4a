//! The report as JSON: a request a line, then a line for each group; or the intervals of all threads.

use std::fmt::Write as _;

use ordering::Order as _;
use requests::Ending;
use scene::{
    Activity, ActivitySum, BootNanos, Consumer, Interval, Request, StageEnd, StageOfRequest, Tid,
    Waker,
};
use text::json::{begin, quoted};

use super::pass::RequestLabels;
use super::report::Report;
use super::second::{BANDS, Band, BlamedTime, SlowRequests, StageLoss, Sum, blamed, kernel_time};
use super::source::Source;
use super::verdict::Verdict;
use super::words;

/// Culprits of a band that are written at most.
const MAX_CULPRITS: usize = 16;

/// All lines.
pub fn json(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (rank, request) in report.slowest.iter().enumerate() {
        let _ = write!(
            text,
            "{},\"slowest\":{}",
            begin("timeline.request"),
            rank + 1
        );
        one(&mut text, request, report);
        text.push_str("}\n");
    }
    for (rank, verdict) in report.verdicts.iter().enumerate() {
        let _ = write!(
            text,
            "{},\"summary\":{}",
            begin("timeline.summary"),
            rank + 1
        );
        summary(&mut text, verdict, report);
        text.push_str("}\n");
    }
    text + &report.lines
}

fn group(text: &mut String, values: &[Option<Box<str>>], report: &Report<'_>) {
    let pair = |(name, value): (&String, &Option<Box<str>>)| {
        format!(
            "{}:{}",
            quoted(name),
            value.as_deref().map_or_else(|| "null".to_owned(), quoted)
        )
    };
    let pairs: Vec<String> = report.by.iter().zip(values).map(pair).collect();
    let _ = write!(text, ",\"group\":{{{}}}", pairs.join(","));
}

fn one(text: &mut String, request: &Request<RequestLabels>, report: &Report<'_>) {
    let source = report.source;
    let (object, first) = (
        quoted(&request.name.to_string()),
        quoted(source.tpoint(request.first())),
    );
    let _ = write!(text, ",\"object\":{object},\"first\":{first}");
    group(text, &request.data.group, report);
    let owner = request
        .data
        .owner
        .as_deref()
        .map_or_else(|| "null".to_owned(), quoted);
    let at = request.begin().0.saturating_sub(report.begin.0);
    let _ = write!(
        text,
        ",\"whose\":{owner},\"at_ns\":{at},\"after_start_ns\":{},\"boot_ns\":{}",
        request.begin().0.saturating_sub(report.start.0),
        request.begin().0
    );
    let depth = request
        .depth
        .map_or_else(|| "null".to_owned(), |depth| depth.to_string());
    let _ = write!(
        text,
        ",\"length_ns\":{},\"size\":{},\"queue_depth\":{depth}",
        request.length(),
        request.size
    );
    let by = blamed(request, source);
    let (least, most) = kernel_time(&by);
    let _ = write!(
        text,
        ",\"kernel_at_least_ns\":{least},\"kernel_at_most_ns\":{most},\"stages\":["
    );
    for (index, stage) in request.stages.iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        write_stage(text, stage, report);
    }
    text.push(']');
}

fn shares(text: &mut String, stage: &StageOfRequest, source: &Source) {
    for (index, share) in stage.shares.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let of = activity(source, share.activity, stage.end);
        let _ = write!(
            text,
            "{comma}{{{of},\"at_least_ns\":{},\"at_most_ns\":{}}}",
            share.at_least, share.at_most
        );
    }
}

fn sums(text: &mut String, stage: &StageOfRequest, source: &Source) {
    for (
        index,
        &ActivitySum {
            activity: what,
            count,
            nanos,
        },
    ) in stage.sums.iter().enumerate()
    {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}{{{},\"count\":{count},\"ns\":{nanos}}}",
            activity(source, what, stage.end)
        );
    }
}

fn write_stage(text: &mut String, stage: &StageOfRequest, report: &Report<'_>) {
    let source = report.source;
    let (from, to) = (
        quoted(source.tpoint(stage.from)),
        quoted(source.tpoint(stage.to)),
    );
    let at = stage.begin.0.saturating_sub(report.begin.0);
    let _ = write!(
        text,
        "{{\"from\":{from},\"to\":{to},\"at_ns\":{at},\"length_ns\":{}",
        stage.length()
    );
    let ends = match stage.ending {
        Ending::OwnWork => "own work",
        Ending::Found => "found",
        Ending::Either => "either",
    };
    let usual = if let StageEnd::Found { usual, .. } = stage.ends {
        usual
    } else {
        None
    };
    let number =
        |number: Option<u64>| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
    let _ = write!(
        text,
        ",\"ends\":\"{ends}\",\"usual_ns\":{},\"lcore\":{}",
        number(usual),
        stage.lcore
    );
    let (tid, cpu) = (
        number(stage.tid.map(|tid| tid.0.into())),
        number(stage.cpu.map(|cpu| cpu.0.into())),
    );
    let _ = write!(
        text,
        ",\"tid\":{tid},\"cpu\":{cpu},\"unknown_ns\":{},\"shares\":[",
        stage.unknown
    );
    shares(text, stage, source);
    text.push_str("],\"did\":[");
    sums(text, stage, source);
    text.push_str("]}");
}

/// Members that say what a thread does.
pub fn activity(source: &Source, activity: Activity, at: BootNanos) -> String {
    let named = |tid: Tid, name: String| {
        let (comm, own) = (quoted(&name), source.is_own(tid));
        format!("\"by\":{{\"tid\":{},\"comm\":{comm},\"own\":{own}}}", tid.0)
    };
    let by = |tid: Tid| named(tid, source.thread(tid, at));
    match activity {
        Activity::Runs => "\"activity\":\"runs\"".to_owned(),
        Activity::Calls(call) => format!(
            "\"activity\":\"calls\",\"call\":{}",
            quoted(&source.call(call))
        ),
        Activity::Interrupted(what) => {
            format!(
                "\"activity\":\"interrupted\",\"interrupt\":{}",
                quoted(&words::interrupt(what))
            )
        }
        Activity::Waits(tid) => format!("\"activity\":\"preempted\",{}", by(tid)),
        Activity::Woken(tid) => format!("\"activity\":\"woken\",{}", by(tid)),
        Activity::Blocked { call, by: waker } => {
            let call = call.map_or_else(String::new, |call| {
                format!(",\"call\":{}", quoted(&source.call(call)))
            });
            let waker = match waker {
                Waker::Thread(tid) => format!(",{}", by(tid)),
                Waker::Interrupt(what) => {
                    format!(",\"interrupt\":{}", quoted(&words::interrupt(what)))
                }
                Waker::Unknown => String::new(),
            };
            format!("\"activity\":\"blocked\"{call}{waker}")
        }
        Activity::Stopped(Some(tid)) => {
            let by = named(tid, source.sender_name(tid, at));
            format!("\"activity\":\"stopped\",{by}")
        }
        Activity::Stopped(None) => "\"activity\":\"stopped\"".to_owned(),
        Activity::Ended => "\"activity\":\"ended\"".to_owned(),
        Activity::Unknown => "\"activity\":\"unknown\"".to_owned(),
    }
}

fn summary(text: &mut String, verdict: &Verdict<'_>, report: &Report<'_>) {
    let (source, times) = (report.source, verdict.times);
    let (prefix, first) = (
        verdict.subject.prefix.to_string(),
        source.tpoint(verdict.subject.first),
    );
    let _ = write!(
        text,
        ",\"object\":{},\"first\":{}",
        quoted(&prefix),
        quoted(first)
    );
    group(text, &verdict.subject.group, report);
    let (part, count, turn) = (
        verdict.subject.is_part,
        times.whole.count(),
        report.usual.turn,
    );
    let _ = write!(
        text,
        ",\"is_part\":{part},\"count\":{count},\"turn_ns\":{turn},\"bands\":["
    );
    for (index, (band, sum)) in BANDS.iter().zip(&verdict.loss.whole).enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        write_band(text, (band, times.whole.quantile(band.part)), sum, report);
    }
    text.push_str("],\"stages\":[");
    stages(text, verdict, source);
    text.push(']');
    slow(text, &verdict.loss.slow);
    let _ = write!(text, ",\"sentence\":{}", quoted(&verdict.sentence(source)));
}

/// Writes the slow requests by connection; `null` if no request is slow.
fn slow(text: &mut String, slow: &SlowRequests) {
    let Some((from, count)) = slow.found() else {
        text.push_str(",\"slow\":null");
        return;
    };
    let _ = write!(
        text,
        ",\"slow\":{{\"from_ns\":{from},\"requests\":{count},\"owners\":["
    );
    for (index, (owner, count)) in slow.owners().into_iter().enumerate() {
        let (comma, owner) = (if index > 0 { "," } else { "" }, quoted(owner));
        let _ = write!(text, "{comma}{{\"whose\":{owner},\"requests\":{count}}}");
    }
    text.push_str("]}");
}

/// Losses of the requests of a band.
fn write_band(text: &mut String, (band, value): (&Band, u64), sum: &Sum, report: &Report<'_>) {
    let (name, mean, requests) = (band.name, sum.length / sum.requests.max(1), sum.requests);
    let _ = write!(
        text,
        "{{\"name\":\"{name}\",\"value_ns\":{value},\"requests\":{requests}"
    );
    let (least, most) = sum.kernel.mean(sum.requests);
    let _ = write!(
        text,
        ",\"mean_ns\":{mean},\"kernel_at_least_ns\":{least},\"kernel_at_most_ns\":{most}"
    );
    let unknown = sum.unknown / sum.requests.max(1);
    let (explained, perhaps) = (sum.explained, sum.perhaps);
    let _ = write!(
        text,
        ",\"explained\":{explained},\"perhaps\":{perhaps},\"unknown_ns\":{unknown},\"by\":["
    );
    for (index, (culprit, blamed)) in sum.culprits().into_iter().take(MAX_CULPRITS).enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let cpu = culprit
            .cpu
            .map_or_else(|| "null".to_owned(), |cpu| cpu.0.to_string());
        let what = culprit.wakers.activity(culprit.activity);
        let what = activity(report.source, what, report.begin);
        let _ = write!(
            text,
            "{comma}{{\"who\":{},{what},\"cpu\":{cpu}",
            quoted(&culprit.name)
        );
        bounds(text, blamed);
    }
    text.push_str("]}");
}

/// The percentiles of all stages, with what the kernel took of them.
fn stages(text: &mut String, verdict: &Verdict<'_>, source: &Source) {
    let mut kinds: Vec<_> = verdict.times.stages.iter().collect();
    kinds.order_by_key(|(kind, _)| **kind);
    for (index, (kind, lengths)) in kinds.into_iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let (from, to) = (quoted(source.tpoint(kind.0)), quoted(source.tpoint(kind.1)));
        let _ = write!(
            text,
            "{comma}{{\"from\":{from},\"to\":{to},\"count\":{}",
            lengths.count()
        );
        let bands = verdict
            .loss
            .stages
            .get(kind)
            .map(StageLoss::taken)
            .unwrap_or_default();
        for (band, (least, most)) in BANDS.iter().zip(bands) {
            let (name, value) = (band.name.replace('.', "_"), lengths.quantile(band.part));
            let _ = write!(
                text,
                ",\"{name}_ns\":{value},\"{name}_kernel_ns\":[{least},{most}]"
            );
        }
        text.push('}');
    }
}

fn bounds(text: &mut String, blamed: &BlamedTime) {
    let BlamedTime {
        requests,
        at_least,
        at_most,
        ..
    } = blamed;
    let _ = write!(
        text,
        ",\"requests\":{requests},\"at_least_ns\":{at_least},\"at_most_ns\":{at_most}}}"
    );
}

/// Writes what each thread did, an interval a line.
pub struct Intervals<'a, W> {
    /// The source of the pass.
    pub source: &'a Source,
    /// Destination of each line.
    pub write: W,
}

impl<W: FnMut(&str)> Consumer<RequestLabels> for Intervals<'_, W> {
    fn request(&mut self, _: &Request<RequestLabels>) {}

    fn interval(&mut self, tid: Tid, interval: Interval) {
        let Interval {
            from,
            to,
            activity: what,
        } = interval;
        let what = activity(self.source, what, from);
        let comm = quoted(&self.source.thread(tid, from));
        let envelope = begin("timeline.interval");
        let (tid, from, to) = (tid.0, from.0, to.0);
        let line = format!(
            "{envelope},\"tid\":{tid},\"comm\":{comm},\"from_ns\":{from},\"to_ns\":{to},{what}}}\n"
        );
        (self.write)(&line);
    }
}
