//! The JSON form of a trace, as `spdk_trace -j` and `dptrace trace --format json` write it.
//!
//! The document is read once, entry by entry, in place: no tree is built, and only a window of the
//! text is in memory. A document of gigabytes needs a few MiB. All complete entries of a truncated
//! document are read. Source of the format: `app/trace/trace.cpp`, `print_event_json`.

mod document;
mod entry;
mod lexer;
mod walk;

pub use document::JsonTrace;
