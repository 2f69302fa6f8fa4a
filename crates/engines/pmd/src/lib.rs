//! Polling threads of Open vSwitch's userspace datapath (PMD threads): their own figures, joined
//! with the kernel's events about them.
//!
//! Open vSwitch counts the processor's cycles between two points of a thread's loop, whether the
//! thread had its CPU or not. So its figures include time in which other threads ran, and nothing
//! in them shows that. The kernel's events do. This crate takes both, and returns the figures
//! without that time, and a cause for each millisecond that took longer than it should.
//!
//! | module | holds |
//! |---|---|
//! | `text` | the texts of `ovs-appctl dpif-netdev/pmd-*`, parsed by names (2.17 to 4.0) |
//! | `history` | the milliseconds of one thread, joined from several texts, and the slow ones |
//! | `answer` | the parts kept of answers in JSON |
//! | `cause` | the causes of slow stretches, from the kernel's intervals |
//! | `figures` | a thread's own figures over a time, and the same without the time in which it did
//!   not run |
//! | `rpc` | the queries, none of which changes anything, and the parsers of answers |
//! | `sentence` | all slow stretches of a thread in one sentence |
//! | `subject` | the polling threads of a process |
//! | `sample` | the kernel's events and the answers over the same time |
//! | `ask`, `database`, `telemetry` | queries of the daemon, its database and DPDK, on the sockets
//!   at which they listen |
//! | `report` | all of it joined, as text and as JSON |
//!
//! The rows up to `sentence` are pure: they open no file and no socket, and read no clock. Texts
//! are untrusted: unreadable parts are left out.
#![forbid(unsafe_code)]

mod answer;
mod ask;
mod cause;
mod database;
mod figures;
mod history;
mod report;
mod rpc;
mod sample;
mod sentence;
mod subject;
mod telemetry;
mod text;

pub use self::text::{Millisecond, Queue, Section, Text, parse};
pub use cause::{Cause, ExplainedStretch, Reason, Shares, explain};
pub use figures::{Counters, Figures, OffCpu};
pub use history::{History, Stretch};
pub use report::Report;
pub use rpc::{Framer, Query, QueryError, answered_settings, answered_text, telemetry};
pub use sample::Sample;
pub use sentence::{Names, sentence, shares_of};
pub use subject::{Subject, polls};
