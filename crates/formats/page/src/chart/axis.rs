//! Ticks of axes and their labels.

/// Returns the smallest 1, 2 or 5 times a power of ten that divides `length` into at most `most`
/// steps.
pub(crate) fn nice_step(length: f64, most: f64) -> f64 {
    let least = (length / most.max(1.0)).max(1.0);
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|n| n * power)
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(power)
}

/// Returns the lines of a logarithmic latency axis, in nanoseconds. With 2 and 5 between powers of
/// ten if there is room.
pub(super) fn latency_ticks(low: f64, high: f64, room: f64) -> Vec<f64> {
    let factors: &[f64] = if (high / low).log10() * 3.0 <= room {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = (0..20).map(|power| 10f64.powi(power));
    let all = powers.flat_map(|power| factors.iter().map(move |factor| power * factor));
    all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001)
        .collect()
}

/// Formats a round number of nanoseconds with its unit.
pub(crate) fn round_time(nanos: f64) -> String {
    let (size, unit) = match nanos {
        1e9.. => (1e9, "s"),
        1e6.. => (1e6, "ms"),
        1e3.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = (nanos / size * 1e3).round() / 1e3;
    format!("{value} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!((nice_step(3e9, 8.0), nice_step(0.0, 8.0)), (5e8, 1.0));
        assert_eq!(
            latency_ticks(900.0, 6_000.0, 9.0)
                .into_iter()
                .map(round_time)
                .collect::<Vec<_>>(),
            ["1 us", "2 us", "5 us"]
        );
        assert_eq!(
            latency_ticks(900.0, 2e6, 5.0)
                .into_iter()
                .map(round_time)
                .collect::<Vec<_>>(),
            ["1 us", "10 us", "100 us", "1 ms"]
        );
    }
}
