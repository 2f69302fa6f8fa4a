//! Errors on the way to a sample.

use std::io;

use bpf_insn::AsmError;
use bpf_program::wire::WrongSize;
use bpf_session::SessionError;
use sched_programs::SchedError;
use text::patterns::did_you_mean_at_end;
use thiserror::Error;
use typeinfo::TypeError;

use crate::trigger::Trigger;

/// Reason that there is no sample of a process's threads.
#[derive(Debug, Error)]
pub enum DelayError {
    /// The programs do not run, or their results can't be read.
    #[error(transparent)]
    Programs(#[from] SchedError),
    /// The kernel's symbols can't be read.
    #[error("reading the kernel's symbols")]
    Symbols {
        /// Cause.
        source: io::Error,
    },
    /// A trigger names a tracepoint that the kernel does not have.
    #[error("the kernel has no tracepoint {name}{}", did_you_mean_at_end(near))]
    NoTracepoint {
        /// Name of the tracepoint.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A trigger names a function that the kernel does not have.
    #[error("the kernel has no function {name}{}", did_you_mean_at_end(near))]
    NoFunction {
        /// Name of the function.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A trigger names a nonexistent tracepoint of system calls.
    #[error(
        "there is no tracepoint syscalls:{event}: they are called sys_enter_NAME and sys_exit_NAME"
    )]
    NoCallEvent {
        /// Name of the tracepoint.
        event: String,
    },
    /// A trigger names a system call that does not exist.
    #[error("no system call is called {name}{}", did_you_mean_at_end(near))]
    NoCall {
        /// Name of the system call.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// The kernel has the function, but no program of ours can be attached to it.
    #[error(
        "the function {function} is missing in the kernel's BTF, so it needs a kprobe, and this \
         kernel has no kprobes (CONFIG_KPROBES){}",
        begin_of_call(function)
    )]
    Untyped {
        /// Name of the function.
        function: String,
    },
    /// A trigger is at a kernel function, but this kernel can't attach to one.
    #[error(
        "the trigger {trigger} needs kprobes (CONFIG_KPROBES) or fentry (CONFIG_FUNCTION_TRACER \
         with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS), and this kernel has neither; a tracepoint \
         (t:) or a probe of the process (U:, u:) works without them"
    )]
    NoKprobes {
        /// Trigger at the function.
        trigger: Trigger,
    },
}

macro_rules! through_programs {
    ($($error:ty),*) => {
        $(impl From<$error> for DelayError {
            fn from(error: $error) -> Self {
                Self::Programs(error.into())
            }
        })*
    };
}
through_programs!(SessionError, WrongSize, AsmError, TypeError);

impl DelayError {
    /// Returns true if the request itself is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoTracepoint { .. }
                | Self::NoFunction { .. }
                | Self::NoCallEvent { .. }
                | Self::NoCall { .. }
        )
    }

    /// Returns true if the machine or the user's rights do not allow it.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Programs(error) => error.is_unsupported(),
            Self::Untyped { .. } | Self::NoKprobes { .. } => true,
            _ => false,
        }
    }
}

/// Returns a hint where a system call begins whose function the kernel's types leave out because it
/// has no arguments.
fn begin_of_call(function: &str) -> String {
    let call = function
        .split_once("_sys_")
        .filter(|(arch, _)| arch.starts_with("__"));
    call.map_or_else(String::new, |(_, call)| {
        format!("; use t:syscalls:sys_enter_{call} for the start of that call")
    })
}
