//! The quantiles that are shown.

/// Names and shares of the quantiles in tables and JSON.
pub(crate) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Number of requests below which a 99th percentile is one request.
pub(crate) const MIN_P99_REQUESTS: u64 = 20;
