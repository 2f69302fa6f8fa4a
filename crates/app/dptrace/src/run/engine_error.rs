//! Errors of the script engine in this program's words.

use console::messages::{NO_PROBES, is_bpftrace_compat};
use errors::{unsupported, usage};

/// Converts an error of the engine.
pub(crate) fn engine_error(error: bt_engine::Error) -> anyhow::Error {
    match error {
        bt_engine::Error::Host(error) => error.into(),
        bt_engine::Error::Session(error) => error.into(),
        bt_engine::Error::NeedsProcess => {
            usage("the script needs a process (__PID__): give -p PID or -c COMMAND")
        }
        bt_engine::Error::NeedsOneProcess { count } => usage(format!(
            "the script needs a single process (__PID__), but these are {count}: choose one with \
             -p PID, or use is_target(pid) in the script"
        )),
        bt_engine::Error::InnerNamespace { what } => unsupported(format!(
            "{what} needs the kernel's first PID namespace: run it outside of the container"
        )),
        bt_engine::Error::Probe { probe, source } if is_bpftrace_compat() => {
            anyhow::Error::new(source).context(format!("unable to attach probe: {probe}"))
        }
        bt_engine::Error::NothingToAttach if is_bpftrace_compat() => anyhow::anyhow!(NO_PROBES),
        bt_engine::Error::NothingToAttach => {
            anyhow::anyhow!("there is nothing to attach; bench: and test: probes need --mode")
        }
        other => other.into(),
    }
}
