//! Limits tracing to the processes of `-p` or `-c`. The kernel limits it where it can (user probes,
//! events of perf); elsewhere the program checks the process itself.

use bt_lang::ast::{Item, ProbeKind};

use super::ctx::Inputs;
use super::probe::Context;
use crate::facts::TracedProcess;
use bt_abi::ThreadsOf;

/// Map of the traced processes in the script, if there may be more than one.
pub const FOLLOWED: &str = "dptrace_followed";

/// Script text that declares that map and removes ended processes. The tracepoint is hit when the
/// last reference to a thread or process goes, after which its number may be another's. No number
/// is negative: that part exists only for the map's type.
const SET: &str = "
let @dptrace_followed = hash(65536);
tracepoint:sched:sched_process_free {
    if (args.pid < 0) { @dptrace_followed[(uint64)0] = (uint64)1; }
    delete(@dptrace_followed, (uint64)args.pid);
}
";

/// Script text that makes that map follow forks. The parent hits the tracepoint before the child
/// runs. It also names threads, whose numbers are no process's.
const FOLLOW: &str = "
tracepoint:sched:sched_process_fork /has_key(@dptrace_followed, (uint64)pid)/ {
    @dptrace_followed[(uint64)args.child_pid] = (uint64)1;
}
";

/// Parses the items that are added to a script whose programs look into that map.
pub(crate) fn set_items(traced: &TracedProcess) -> Vec<Item> {
    let parts = [SET, if traced.follows_forks { FOLLOW } else { "" }];
    bt_lang::parse(&parts.concat()).program.items
}

/// Returns the process to which the kernel's events are limited.
fn traced(inputs: &Inputs<'_>) -> Option<TracedProcess> {
    inputs.facts.traced().filter(|_| inputs.config.filter_pid)
}

/// Returns the threads that samples and counted events are limited to; `None` for all.
pub(crate) fn threads(inputs: &Inputs<'_>) -> Option<ThreadsOf> {
    traced(inputs).map(|it| {
        let pids = std::iter::once(it.pid).chain(it.others).collect();
        ThreadsOf {
            pids,
            follows_forks: it.follows_forks,
        }
    })
}

/// Returns the process that the kernel limits user probes to. The kernel can't follow forks, and
/// can limit them to only one.
pub(crate) fn uprobe_pid(inputs: &Inputs<'_>) -> Option<u32> {
    let is_set = inputs.facts.traced().is_some_and(|it| it.is_set());
    inputs.facts.pid().filter(|_| !is_set)
}

/// Returns true if a program must check itself whose event it is.
pub(crate) fn is_filtered(inputs: &Inputs<'_>, context: &Context) -> bool {
    if context.is_user() {
        return inputs.facts.traced().is_some_and(|it| it.is_set());
    }
    let in_kernel = matches!(
        context.kind,
        ProbeKind::Tracepoint
            | ProbeKind::Rawtracepoint
            | ProbeKind::Kprobe
            | ProbeKind::Kretprobe
            | ProbeKind::Fentry
            | ProbeKind::Fexit
    );
    in_kernel && traced(inputs).is_some()
}
