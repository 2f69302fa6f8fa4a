//! Tests of the program, as its users start it.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that can't go on fails"
)]

mod agreement;
mod alive;
mod bad_input;
mod capture;
mod chaos;
mod code_places;
mod common;
mod completion;
mod cpus;
mod cpus_audit;
mod deadline;
mod demo_target;
mod docs;
mod doctor;
mod dpdk;
mod examples_run;
mod export;
mod follow;
mod found;
mod front_door;
mod ftrace_truth;
mod generate;
mod goldens;
mod goldens_spdk;
mod hostile_bounds;
mod hostile_files;
mod hostile_signals;
mod hostile_text;
mod inspect;
mod json;
mod latency;
mod latency_summary;
mod layouts;
mod list;
mod live;
mod manual;
mod meta;
mod names_alive;
mod names_beside;
mod pmd;
mod progress;
mod record_demo;
mod record_ends;
mod record_others;
mod record_refusals;
mod report;
mod rights;
mod run;
mod run_commands;
mod run_debuginfo;
mod run_filter;
mod run_keys;
mod run_language;
mod run_limits;
mod run_links;
mod run_losses;
mod run_never_hit;
mod run_places;
mod run_stacks;
mod serve;
mod stack_files;
mod terminal;
mod timeline;
mod timeline_truth;
mod top;
mod trace;
mod trace_filters;
mod trace_inputs;
mod trace_named;
mod watch;
mod whole_outputs;
