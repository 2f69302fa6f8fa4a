//! Polling threads of Open vSwitch's userspace datapath (PMD threads): what they say of themselves, joined with what the kernel
//! did to them.
//!
//! Open vSwitch counts the processor's cycles between two points of a thread's loop, whether the thread had its CPU or not. So its
//! figures hold time in which other threads ran, and nothing in them shows that. The kernel's events do: this crate takes both,
//! and gives the figures without that time, and a cause for each millisecond that took longer than it should.
//!
//! | module | holds |
//! |---|---|
//! | `text` | the texts of `ovs-appctl dpif-netdev/pmd-*`, parsed by the names of their lines and columns (2.17 to 4.0) |
//! | `history` | the milliseconds of one thread, joined from several texts, and the slow ones of them |
//! | `answer` | what is kept of answers in JSON |
//! | `cause` | why a stretch was slow, from the kernel's intervals |
//! | `figures` | what a thread says of itself over a time, and what is left without the time in which it did not run |
//! | `rpc` | the questions, none of which changes anything, and how answers are read |
//! | `sentence` | all slow stretches of a thread in one sentence |
//! | `subject` | which threads of a process poll |
//! | `sample` | the kernel's events and the answers over the same time |
//! | `ask`, `database`, `telemetry` | asks the daemon, its database and DPDK, on the sockets at which they listen |
//! | `report` | all of it joined, as text and as JSON |
//!
//! The rows up to `sentence` are pure: they open no file and no socket, and read no clock. Texts are untrusted: whatever can't be
//! read in them is left out.
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
pub use cause::{Cause, Explained, Reason, Shares, explain};
pub use figures::{Counters, Figures, OffCpu};
pub use history::{History, Stretch};
pub use report::Report;
pub use rpc::{Framer, NoAnswer, Question, answered_settings, answered_text, telemetry};
pub use sample::Sample;
pub use sentence::{Names, sentence, shares_of};
pub use subject::{Subject, polls};
