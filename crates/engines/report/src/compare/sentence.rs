//! The sentence on a kind of requests: how much slower or faster it is, where, and who did that.

use std::cmp::Reverse;

use ordering::Order as _;
use page::{ComparedKind, ComparedTime, Difference};
use screen::{counted, percent, share, time};
use timeline::text::common_start;

/// Limit on the stages and takers that a sentence names.
const MAX_NAMED: usize = 2;

/// Returns the sentence, without a full stop.
pub(super) fn sentence(kind: &ComparedKind) -> String {
    let whole = &kind.whole;
    if whole.median.difference == Difference::TooFew {
        return format!(
            "{}: too few to compare, A has {} and B {}",
            kind.name,
            counted(whole.counts[0], "request"),
            whole.counts[1]
        );
    }
    let mut parts = vec![format!(
        "{}: median {}, p99 {}",
        kind.name,
        from_to(&whole.median),
        from_to(&whole.p99)
    )];
    if let Some((_, _, all)) = whole.mean.change() {
        parts.push(format!("the mean is {} {}", size(all), direction(all)));
        parts.extend(stages(kind, all));
        parts.extend(causes(kind, all));
    } else {
        parts.push("no clear change of the mean".to_owned());
    }
    parts.join("; ")
}

/// Formats a figure in both captures: `120 us -> 480 us (4.0 times)`, and changes by less than
/// half in percent.
fn from_to(figure: &ComparedTime) -> String {
    let [a, b] = figure.values.map(Option::unwrap_or_default);
    let times = match figure.difference {
        Difference::Change if a.max(b) / 2 < a.min(b) => {
            let sign = if b < a { "-" } else { "+" };
            format!("{sign}{}", percent(share(a.abs_diff(b), a), 0))
        }
        Difference::Change => format!("{:.1} times", b as f64 / a.max(1) as f64),
        _ => "within the noise".to_owned(),
    };
    format!("{} -> {} ({times})", time(a), time(b))
}

fn size(nanos: i64) -> String {
    time(nanos.unsigned_abs())
}

fn direction(nanos: i64) -> &'static str {
    if nanos < 0 { "less" } else { "more" }
}

/// Names the stages that took most of a change of the mean.
fn stages(kind: &ComparedKind, all: i64) -> Option<String> {
    let names = kind.stages.iter().flat_map(|it| [&*it.from, &*it.to]);
    let start = common_start(names).len();
    let stages = kind.stages.iter().map(|it| {
        let name = format!("{} -> {}", &it.from[start..], &it.to[start..]);
        (name, it.times.mean)
    });
    let one = |(name, _, _, more): &(String, u64, u64, i64)| format!("{} in {name}", size(*more));
    let parts: Vec<String> = largest(stages, all).iter().map(one).collect();
    (!parts.is_empty()).then(|| format!("of it {}", parts.join(" and ")))
}

/// Names the takers that took most of a change of the mean.
fn causes(kind: &ComparedKind, all: i64) -> Option<String> {
    let causes = kind.causes.iter().map(|it| (it.name.clone(), it.took));
    let named = largest(causes, all);
    let one = |(name, before, _, more): &(String, u64, u64, i64)| {
        format!(
            "{} {} taken by {name} (was {})",
            size(*more),
            direction(*more),
            time(*before)
        )
    };
    let parts: Vec<String> = named.iter().map(one).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Returns the largest changes in the direction of the whole one that are at least a 50th of it:
/// names, times in A and B, and difference.
fn largest(
    of: impl Iterator<Item = (String, ComparedTime)>,
    all: i64,
) -> Vec<(String, u64, u64, i64)> {
    let mut changes: Vec<_> = of
        .filter_map(|(name, time)| {
            let (a, b, more) = time.change()?;
            let is_large = more.unsigned_abs().saturating_mul(50) >= all.unsigned_abs();
            (more.signum() == all.signum() && is_large).then_some((name, a, b, more))
        })
        .collect();
    changes.order_by_key(|(.., more)| Reverse(more.unsigned_abs()));
    changes.truncate(MAX_NAMED);
    changes
}
