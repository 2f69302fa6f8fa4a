//! Writes SPDK trace files of every era, for tests and benchmarks.
#![forbid(unsafe_code)]
