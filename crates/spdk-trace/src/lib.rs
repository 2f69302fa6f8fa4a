//! Reads SPDK trace files of every era.
#![forbid(unsafe_code)]
