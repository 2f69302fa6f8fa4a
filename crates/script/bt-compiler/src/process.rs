//! Whose events count: everybody's, or those of the processes of `-p` or `-c`. Where the kernel can be asked for a process's
//! events alone (user probes, events of perf), it is; elsewhere the program looks whose it is.

use bt_lang::ast::{Item, ProbeKind};

use super::ctx::Inputs;
use super::probe::Context;
use crate::facts::TracedProcess;
use bt_abi::ThreadsOf;

/// The script's map of the processes that count, where there may be more than one.
pub const FOLLOWED: &str = "dptrace_followed";

/// That map, in the language itself, and what takes processes out of it: a tracepoint that is hit when the last that is left of
/// a thread or process goes, and its number may be another's. No number is negative: that part is there for the map's type.
const SET: &str = "
let @dptrace_followed = hash(65536);
tracepoint:sched:sched_process_free {
    if (args.pid < 0) { @dptrace_followed[(uint64)0] = (uint64)1; }
    delete(@dptrace_followed, (uint64)args.pid);
}
";

/// What has that map follow forks. The tracepoint is hit by the parent before the child runs; it names threads, too, whose
/// numbers are no process's.
const FOLLOW: &str = "
tracepoint:sched:sched_process_fork /has_key(@dptrace_followed, (uint64)pid)/ {
    @dptrace_followed[(uint64)args.child_pid] = (uint64)1;
}
";

/// What a script has besides its own where programs look into that map.
pub(crate) fn set_items(traced: &TracedProcess) -> Vec<Item> {
    let parts = [SET, if traced.follows_forks { FOLLOW } else { "" }];
    bt_lang::parse(&parts.concat()).program.items
}

/// The process whose events in the kernel alone count.
fn traced(inputs: &Inputs<'_>) -> Option<TracedProcess> {
    inputs.facts.traced().filter(|_| inputs.config.filter_pid)
}

/// Whose samples and counted events there are to be; everybody's if none.
pub(crate) fn threads(inputs: &Inputs<'_>) -> Option<ThreadsOf> {
    traced(inputs).map(|it| {
        let pids = std::iter::once(it.pid).chain(it.others).collect();
        ThreadsOf { pids, follows_forks: it.follows_forks }
    })
}

/// The process that the kernel is to limit user probes to. It can't follow forks, and limits them to one.
pub(crate) fn uprobe_pid(inputs: &Inputs<'_>) -> Option<u32> {
    let is_set = inputs.facts.traced().is_some_and(|it| it.is_set());
    inputs.facts.pid().filter(|_| !is_set)
}

/// Whether a program must look itself whose event it is.
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
