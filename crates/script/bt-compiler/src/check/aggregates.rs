//! Table of the functions that only a map can hold.

use bt_lang::Span;
use bt_lang::ast;

use super::Check;
use crate::hir::{Expr, MapId, Stmt};
use crate::map::MapValueKind;
use bt_abi::Aggregation;
use bt_abi::SeriesOp;

/// Function of the table.
pub(crate) struct Aggregate {
    pub(crate) name: &'static str,
    /// Signature as in the documentation.
    pub(crate) signature: &'static str,
    pub(crate) doc: &'static str,
    /// Least and greatest number of arguments.
    args: (usize, usize),
    make: fn(&mut Check<'_, '_>, &[ast::Expr], Span, bool) -> Option<Aggregation>,
}

/// All functions.
pub(crate) const AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        signature: "count()",
        doc: "The number of calls.",
        args: (0, 0),
        make: |_, _, _, _| Some(Aggregation::Count),
    },
    Aggregate {
        name: "sum",
        signature: "sum(n)",
        doc: "The sum.",
        args: (1, 1),
        make: |_, _, _, signed| Some(Aggregation::Sum { signed }),
    },
    Aggregate {
        name: "min",
        signature: "min(n)",
        doc: "The least.",
        args: (1, 1),
        make: |_, _, _, signed| Some(Aggregation::Min { signed }),
    },
    Aggregate {
        name: "max",
        signature: "max(n)",
        doc: "The greatest.",
        args: (1, 1),
        make: |_, _, _, signed| Some(Aggregation::Max { signed }),
    },
    Aggregate {
        name: "avg",
        signature: "avg(n)",
        doc: "The average.",
        args: (1, 1),
        make: |_, _, _, signed| Some(Aggregation::Avg { signed }),
    },
    Aggregate {
        name: "stats",
        signature: "stats(n)",
        doc: "Count, average and total.",
        args: (1, 1),
        make: |_, _, _, signed| Some(Aggregation::Stats { signed }),
    },
    Aggregate {
        name: "hist",
        signature: "hist(n[, bits])",
        doc: "A histogram by powers of two, each in 2^bits parts (0 to 5).",
        args: (1, 2),
        make: hist,
    },
    Aggregate {
        name: "lhist",
        signature: "lhist(n, min, max, step)",
        doc: "A histogram in steps of one width.",
        args: (4, 4),
        make: lhist,
    },
    Aggregate {
        name: "tseries",
        signature: "tseries(n, interval, buckets[, agg])",
        doc: "A time series: the last value of each interval, or its avg, max, min or sum.",
        args: (3, 4),
        make: series,
    },
];

/// Type names of the functions' results, in casts and declarations.
pub(crate) const TYPES: &[(&str, Aggregation)] = &[
    ("count_t", Aggregation::Count),
    ("sum_t", Aggregation::Sum { signed: true }),
    ("usum_t", Aggregation::Sum { signed: false }),
    ("min_t", Aggregation::Min { signed: true }),
    ("umin_t", Aggregation::Min { signed: false }),
    ("max_t", Aggregation::Max { signed: true }),
    ("umax_t", Aggregation::Max { signed: false }),
    ("avg_t", Aggregation::Avg { signed: true }),
    ("uavg_t", Aggregation::Avg { signed: false }),
    ("stats_t", Aggregation::Stats { signed: true }),
    ("ustats_t", Aggregation::Stats { signed: false }),
];

/// Limit on the buckets of `lhist`.
const MAX_LINEAR: u64 = 1000;
/// Limit on the buckets of a series. A per-CPU value has at most 32 KiB, and a bucket takes 24
/// bytes.
const MAX_SERIES: u64 = 1000;

pub(super) fn find(name: &str) -> Option<&'static Aggregate> {
    AGGREGATES.iter().find(|aggregate| aggregate.name == name)
}

impl Check<'_, '_> {
    /// Checks `@map[key] = count()` and the like; `span` is the call's, `whole` the assignment's.
    pub(super) fn aggregate(
        &mut self,
        aggregate: &Aggregate,
        map: MapId,
        key: Expr,
        args: &[ast::Expr],
        (span, whole): (Span, Span),
    ) -> Option<Stmt> {
        let (least, most) = aggregate.args;
        if args.len() < least || args.len() > most {
            self.wrong_hint(
                span,
                format!(
                    "{}() takes {} argument{}, not {}",
                    aggregate.name,
                    counts(least, most),
                    if most == 1 { "" } else { "s" },
                    args.len()
                ),
                format!("as in {}", aggregate.signature),
            );
            return None;
        }
        let value = args.first().map(|value| self.integer(value));
        let signed = value.as_ref().is_some_and(|value| value.ty.is_signed());
        let agg = (aggregate.make)(self, args, span, signed)?;
        let name = self.map(map).name.clone();
        let joined = match &self.map(map).value {
            None => Some(agg),
            Some(MapValueKind::Agg(known)) => known.join(&agg),
            Some(MapValueKind::Scalar(_)) => None,
        };
        if let Some(agg) = joined {
            self.tables.maps[map].value = Some(MapValueKind::Agg(agg));
        } else {
            let old = match &self.map(map).value {
                Some(MapValueKind::Agg(known)) => known.name().to_owned(),
                Some(MapValueKind::Scalar(ty)) => self.type_name(ty),
                None => String::new(),
            };
            let message = format!(
                "type mismatch for @{name}: it holds '{old}', and this is '{}_t'",
                aggregate.name
            );
            self.wrong(span, message);
            return None;
        }
        Some(Stmt::Aggregate {
            map,
            key,
            args: value.into_iter().collect(),
            span: whole,
        })
    }

    /// Checks a number that must be known at compile time.
    fn known(&mut self, arg: &ast::Expr, what: &str) -> Option<u64> {
        let value = self.expr(arg);
        if value.ty.is_unknown() {
            return None;
        }
        let known = value.constant().filter(|_| value.ty.is_number());
        if known.is_none() {
            self.wrong(arg.span, format!("{what} must be a literal number"));
        }
        known
    }
}

fn counts(least: usize, most: usize) -> String {
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}

fn hist(check: &mut Check<'_, '_>, args: &[ast::Expr], _: Span, _: bool) -> Option<Aggregation> {
    let bits = match args.get(1) {
        Some(bits) => check.known(bits, "the number of bits")?,
        None => 0,
    };
    if bits > 5 {
        check.wrong(args[1].span, format!("hist: bits {bits} must be 0..5"));
        return None;
    }
    Some(Aggregation::Hist { bits: bits as u8 })
}

fn lhist(
    check: &mut Check<'_, '_>,
    args: &[ast::Expr],
    span: Span,
    _: bool,
) -> Option<Aggregation> {
    let min = check.known(&args[1], "the least value")?.cast_signed();
    let max = check.known(&args[2], "the greatest value")?.cast_signed();
    let step = check.known(&args[3], "the step")?.cast_signed();
    let problem = if step <= 0 {
        format!("lhist() step must be >= 1 ({step} provided)")
    } else if min < 0 {
        format!("lhist() min must be non-negative (provided min {min})")
    } else if min > max {
        format!("lhist()'s lower bound {min} is not below the upper one, {max}")
    } else if min.checked_add(step).is_none_or(|end| end > max) {
        format!(
            "lhist()'s step {step} is wider than the whole range, {}",
            max - min
        )
    } else if (max - min) as u64 / step as u64 > MAX_LINEAR {
        format!(
            "lhist() too many buckets, must be <= {MAX_LINEAR} (would need {})",
            (max - min) / step
        )
    } else {
        return Some(Aggregation::Lhist {
            min,
            max,
            step: step as u64,
        });
    };
    check.wrong(span, problem);
    None
}

fn series(
    check: &mut Check<'_, '_>,
    args: &[ast::Expr],
    span: Span,
    signed: bool,
) -> Option<Aggregation> {
    let interval = check.known(&args[1], "tseries: the interval")?;
    let buckets = check.known(&args[2], "tseries: the number of intervals")?;
    if interval == 0 || interval > i64::MAX as u64 {
        check.wrong(span, "tseries() expects an interval >= 1ns");
        return None;
    }
    if !(1..=MAX_SERIES).contains(&buckets) {
        check.wrong(
            span,
            format!("tseries() expects 1 to {MAX_SERIES} intervals ({buckets} provided)"),
        );
        return None;
    }
    let op = match args.get(3).map(|arg| (&arg.kind, arg.span)) {
        None => SeriesOp::Last,
        Some((ast::ExprKind::Str(name), span)) => match name.as_slice() {
            b"avg" => SeriesOp::Avg,
            b"max" => SeriesOp::Max,
            b"min" => SeriesOp::Min,
            b"sum" => SeriesOp::Sum,
            _ => {
                check.wrong(span, "tseries() gathers by avg, max, min or sum");
                return None;
            }
        },
        Some((_, span)) => {
            check.wrong(
                span,
                "tseries() expects a string literal as its aggregation function",
            );
            return None;
        }
    };
    Some(Aggregation::Series {
        interval,
        buckets: buckets as u32,
        op,
        signed,
    })
}
