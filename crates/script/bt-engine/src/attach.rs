//! Attaches a script's probes.

use std::path::PathBuf;

use bpf_program::module::ProgramKind;
use bpf_session::{Scope, Session, SessionError, UprobePlace, Uprobes};
use bt_abi::{Attach, MissingProbes, SampleRate, Script, ScriptProbe, ThreadsOf};

use host::Pid;
use host::proc::{self, stand_in, task};
use uapi::perf::CPU_CLOCK;

use crate::Error;
use crate::observe::{Notice, Observer};

/// Returns the number of probes that are run rather than attached.
pub(crate) fn run_by_hand(script: &Script) -> usize {
    let by_hand = |probe: &&ScriptProbe| {
        matches!(
            probe.attach,
            Attach::Begin | Attach::End | Attach::Signal { .. }
        )
    };
    script
        .probes
        .iter()
        .filter(by_hand)
        .map(|probe| probe.count)
        .sum()
}

/// Returns the files that user probes are in.
pub(crate) fn files(script: &Script) -> Vec<PathBuf> {
    let path = |probe: &ScriptProbe| match &probe.attach {
        Attach::Uprobe { path, .. } => Some(path.clone()),
        _ => None,
    };
    let mut files: Vec<PathBuf> = script.probes.iter().filter_map(path).collect();
    files.sort();
    files.dedup();
    files
}

/// Returns true if there is anything to attach or to wait for.
pub(crate) fn is_live(script: &Script) -> bool {
    let live = |probe: &ScriptProbe| {
        !matches!(
            probe.attach,
            Attach::Begin | Attach::End | Attach::Manual { .. }
        )
    };
    script.probes.iter().any(live)
}

/// Returns true if anything may still come once all is attached: iterators have ended by then.
pub(crate) fn goes_on(script: &Script) -> bool {
    let is_through = |attach: &Attach| {
        matches!(
            attach,
            Attach::Begin | Attach::End | Attach::Manual { .. } | Attach::Iterator
        )
    };
    script.probes.iter().any(|probe| !is_through(&probe.attach))
}

/// Attaches all probes; returns their number.
pub(crate) fn all(
    script: &Script,
    session: &mut Session,
    observer: &dyn Observer,
) -> Result<usize, Error> {
    let mut count = 0;
    // If several programs are at one place, the kernel runs those of uprobes, kprobes and fentry
    // in the reverse order of their attachment, all others in the same order: so blocks run in the
    // script's order.
    let is_timer = |probe: &&ScriptProbe| matches!(probe.attach, Attach::Interval { .. });
    let forward = script
        .probes
        .iter()
        .filter(|probe| !runs_in_reverse(script, probe) && !is_timer(probe));
    // Timers begin after all other attachments, which may take seconds.
    let timers = script.probes.iter().filter(is_timer);
    let backward = script
        .probes
        .iter()
        .rev()
        .filter(|probe| runs_in_reverse(script, probe));
    let mut groups: Vec<Vec<&ScriptProbe>> = Vec::new();
    for probe in forward.chain(backward).chain(timers) {
        match groups.last_mut() {
            Some(group)
                if group
                    .first()
                    .is_some_and(|first| share_a_link(first, probe)) =>
            {
                group.push(probe);
            }
            _ => groups.push(vec![probe]),
        }
    }
    for group in &groups {
        let Some(probe) = group.first() else { continue };
        let name = || probe.name.clone();
        match attach_group(session, group) {
            Ok(()) => {
                count += group.iter().map(|probe| attached(probe)).sum::<usize>();
                for probe in group.iter().filter(|probe| attached(probe) > 0) {
                    observer.notice(&Notice::Attached {
                        probe: probe.name.clone(),
                    });
                }
            }
            Err(source) if source.is_unsupported() => {
                return Err(Error::Probe {
                    probe: name(),
                    source,
                });
            }
            Err(source) => match script.config.missing_probes {
                MissingProbes::Error => {
                    return Err(Error::Probe {
                        probe: name(),
                        source,
                    });
                }
                MissingProbes::Warn => observer.notice(&Notice::NotAttached {
                    probe: name(),
                    source,
                }),
                MissingProbes::Ignore => {}
            },
        }
    }
    Ok(count)
}

/// Returns true if both are user probes of one program in one file: one link does for all such.
fn share_a_link(one: &ScriptProbe, other: &ScriptProbe) -> bool {
    match (&one.attach, &other.attach) {
        (
            Attach::Uprobe { path, pid, .. },
            Attach::Uprobe {
                path: other_path,
                pid: other_pid,
                ..
            },
        ) => one.program == other.program && path == other_path && pid == other_pid,
        _ => false,
    }
}

/// Attaches probes that share a link.
fn attach_group(session: &mut Session, group: &[&ScriptProbe]) -> Result<(), SessionError> {
    let Some(first) = group.first() else {
        return Ok(());
    };
    let Attach::Uprobe { path, pid, .. } = &first.attach else {
        return attach_one(session, first);
    };
    let mut places: Vec<UprobePlace> = Vec::new();
    for probe in group {
        if let Attach::Uprobe { places: own, .. } = &probe.attach {
            places.extend(own);
        }
    }
    session.attach_uprobes(
        first.program,
        &Uprobes {
            path,
            places: &places,
            pid: *pid,
        },
    )
}

fn attached(probe: &ScriptProbe) -> usize {
    match probe.attach {
        Attach::Begin | Attach::End | Attach::Signal { .. } | Attach::Manual { .. } => 0,
        _ => probe.count,
    }
}

fn runs_in_reverse(script: &Script, probe: &ScriptProbe) -> bool {
    use ProgramKind::{Fentry, Fexit, Kprobe, Uprobe, UprobeReturn};
    let kind = script
        .module
        .programs
        .get(probe.program)
        .map(|program| program.kind);
    matches!(kind, Some(Uprobe | UprobeReturn | Kprobe | Fentry | Fexit))
}

fn attach_one(session: &mut Session, probe: &ScriptProbe) -> Result<(), SessionError> {
    let program = probe.program;
    match &probe.attach {
        Attach::Begin | Attach::End | Attach::Signal { .. } | Attach::Manual { .. } => Ok(()),
        Attach::Uprobe { .. } => attach_group(session, &[probe]),
        Attach::Kprobe { function, offset } => session.attach_kprobe(program, function, *offset),
        Attach::Tracepoint { id, name } => session.attach_tracepoint(program, name, *id),
        Attach::RawTracepoint { name } => session.attach_raw_tracepoint(program, name),
        Attach::LoadedTarget => session.attach_loaded_target(program, &probe.name),
        Attach::Iterator => session.iterate(program, &probe.name),
        Attach::Interval { nanos } => {
            session.attach_counter(program, CPU_CLOCK, *nanos, Scope::Cpu(first_cpu()))
        }
        Attach::Profile { every, of } => on_all_of(of.as_ref(), |scope| match every {
            SampleRate::Nanos(nanos) => session.attach_counter(program, CPU_CLOCK, *nanos, scope),
            SampleRate::Hertz(hertz) => session.attach_frequency(program, CPU_CLOCK, *hertz, scope),
        }),
        Attach::Watchpoint {
            address,
            length,
            access,
            pid,
        } => {
            let mut watch =
                |scope| session.attach_breakpoint(program, (*address, *length), *access, scope);
            match pid {
                Some(pid) => on_threads(*pid, |thread| watch(Scope::Process(thread))),
                None => on_all(watch),
            }
        }
        Attach::Counter {
            kind,
            config,
            period,
            of,
        } => on_all_of(of.as_ref(), |scope| {
            session.attach_counter(program, (*kind, *config), *period, scope)
        }),
    }
}

/// Attaches to the threads of a process. The kernel adds threads that start later; threads that end
/// meanwhile are no loss.
fn on_threads(
    pid: u32,
    mut attach: impl FnMut(u32) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    // The first thread may have ended before the others.
    let first = stand_in(Pid(pid)).map_or(pid, |thread| thread.0);
    let threads = proc::threads(Pid(pid)).into_iter().map(|thread| thread.0);
    let others: Vec<u32> = threads
        .filter(|thread| *thread != pid && *thread != first)
        .collect();
    attach(first)?;
    for thread in others {
        match attach(thread) {
            Err(error) if task(Pid(pid), Pid(thread)).exists() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Attaches to the threads of processes, or else to all CPUs. Some of several processes may have
/// ended.
fn on_all_of(
    of: Option<&ThreadsOf>,
    mut attach: impl FnMut(Scope) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    let Some(ThreadsOf {
        pids,
        follows_forks: forks,
    }) = of
    else {
        return on_all(attach);
    };
    for &pid in pids {
        match on_threads(pid, |tid| attach(Scope::Threads { tid, forks: *forks })) {
            Err(_) if pids.len() > 1 && proc::start_of_living(Pid(pid)).is_none() => {}
            attached => attached?,
        }
    }
    Ok(())
}

fn first_cpu() -> u32 {
    host::cpus::online().first().copied().unwrap_or_default()
}

fn on_all(mut attach: impl FnMut(Scope) -> Result<(), SessionError>) -> Result<(), SessionError> {
    host::cpus::online()
        .into_iter()
        .try_for_each(|cpu| attach(Scope::Cpu(cpu)))
}
