//! Whether the slowest group stands out of the others, or is only the one that chance put first.
//!
//! Its quantile is compared with that of all others together, by their 95 % intervals. Stalls delay
//! many requests at once, so the spread of the slowest requests over the trace's time widens them.

use spdk_trace::Ticks;
use stats::{BATCHES, Batch, Histogram, Interval, quantile_interval};

use super::Row;

/// Quantiles to compare, in order of preference: with few requests, the upper ones have no upper
/// bound.
const QUANTILES: [f64; 3] = [0.99, 0.9, 0.5];
/// Weight of one request in a batch: batches of few requests are not rounded to none.
const WEIGHT: f64 = 1_000.0;

/// Returns whether a row is slower than all the others together, beyond the noise. `span` is the
/// time of the trace.
pub(super) fn stands_out(row: &Row<'_>, others: &[&Row<'_>], span: (Ticks, Ticks)) -> bool {
    let mut together = Histogram::default();
    for bucket in others.iter().flat_map(|row| row.times.whole.buckets()) {
        (0..bucket.count).for_each(|_| together.add(bucket.last));
    }
    let bounded = QUANTILES.iter().find_map(|quantile| {
        let interval = interval(others, &together, *quantile, span);
        Some((*quantile, interval.high?))
    });
    bounded.is_some_and(|(quantile, high)| {
        interval(&[row], &row.times.whole, quantile, span).low > high
    })
}

/// Returns the interval of a quantile of these rows, whose times together are `all`.
fn interval(rows: &[&Row<'_>], all: &Histogram, quantile: f64, span: (Ticks, Ticks)) -> Interval {
    let value = all.quantile(quantile);
    let mut beyond = [0u64; BATCHES];
    for end in rows
        .iter()
        .flat_map(|row| row.times.tail.ends_beyond(value))
    {
        let at = u128::from(end.0.saturating_sub(span.0.0)) * BATCHES as u128;
        let nth = at / u128::from(span.1.0.saturating_sub(span.0.0).max(1));
        beyond[(nth as usize).min(BATCHES - 1)] += 1;
    }
    // Only the longest are kept: they stand for all beyond the quantile.
    let kept = beyond.iter().sum::<u64>().max(1) as f64;
    let each = WEIGHT * all.count() as f64 * (1.0 - quantile) / kept;
    let batches = beyond.map(|beyond| Batch {
        count: (WEIGHT * all.count() as f64 / BATCHES as f64) as u64,
        sum: (beyond as f64 * each) as u64,
    });
    quantile_interval(all, quantile, &batches)
}
