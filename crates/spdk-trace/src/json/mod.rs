//! The JSON form of a trace, as `spdk_trace -j` and `dptrace trace --format json` write it.
//!
//! The document is walked once, entry by entry, in place: nothing is built of it, and only a window of it is held, so that a
//! document of gigabytes takes a few MiB; all whole entries of one that is cut off are read. Source of its shape:
//! `app/trace/trace.cpp`, `print_event_json`.

mod document;
mod entry;
mod lexer;
mod walk;

pub use document::JsonTrace;
