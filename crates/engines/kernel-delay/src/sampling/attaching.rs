//! Attaching for the options of a run, with the processes held meanwhile.

use crate::live::{self, AttachOptions, Facts, PlacedTrigger, Tracer};
use crate::programs::TriggerUse;
use crate::{SamplingOptions, Subject, trigger_places};
use observer::Observer;
use sys::process::PidFd;

/// Holds the processes, so that their ends are seen.
pub(super) fn hold(pids: &[u32]) -> anyhow::Result<Vec<PidFd>> {
    let mut held: Vec<PidFd> = Vec::new();
    for &pid in pids {
        match PidFd::open(pid) {
            Ok(process) => held.push(process),
            // One of several may have ended meanwhile.
            Err(error) if pids.len() == 1 => {
                return Err(
                    anyhow::Error::new(error).context(format!("no process has the pid {pid}"))
                );
            }
            Err(_) => {}
        }
    }
    Ok(held)
}

/// Finds the triggers in the process, and attaches all programs.
pub(super) fn attach(
    subject: &Subject,
    options: &SamplingOptions,
    facts: &Facts,
    observer: &Observer,
) -> anyhow::Result<Tracer> {
    // Two programs at one place would start and stop at the same hit.
    let uses = if options.start_trigger == options.stop_trigger {
        vec![(&options.start_trigger, TriggerUse::Both)]
    } else {
        vec![
            (&options.start_trigger, TriggerUse::Start),
            (&options.stop_trigger, TriggerUse::Stop),
        ]
    };
    let named = uses
        .into_iter()
        .filter_map(|(trigger, to)| Some((trigger.as_ref()?, to)));
    let placed = |(trigger, to)| {
        Ok(PlacedTrigger {
            trigger,
            to,
            places: trigger_places(subject, trigger, observer)?,
        })
    };
    let triggers = named.map(placed).collect::<anyhow::Result<_>>()?;
    let attach = AttachOptions {
        pids: subject.pids.clone(),
        children: subject.children,
        absences: None,
        max_threads: options.max_threads,
        events: options.events.clone(),
        triggers,
        count_upcalls: options.count_upcalls,
        page_faults: options.page_faults,
        observer: observer.clone(),
    };
    let attached = live::attach(facts, attach)?;
    for (trigger, whose) in &attached.triggers {
        observer.note(&format!("the trigger {trigger} fires for {whose}"));
    }
    if let Some(why) = &attached.uncounted_upcalls {
        observer.note(&format!(
            "Open vSwitch's upcalls can't be counted (--skip-upcall-stats silences this): {why}"
        ));
    }
    if let Some(why) = &attached.unseen_faults {
        observer.note(&format!(
            "page faults can't be traced and count as the threads' own code (--skip-page-faults \
             silences this): {why}"
        ));
    }
    Ok(attached.tracer)
}
