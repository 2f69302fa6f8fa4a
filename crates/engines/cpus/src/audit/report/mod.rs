//! The report on each CPU: the owners, intruders and victims of its time.

mod budget;
mod victims;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::layout::{Key, State, Tally, kind};
use super::model::{Context, CpuReport, Intruder, Names, Share};
use super::sums::Sums;
use budget::budget;
use ordering::Order as _;
use victims::victims;

/// Reports on each CPU. A poller is one of `subject`, if given, and has at least half of its CPU.
pub fn report(sums: &Sums, subject: Option<&BTreeSet<u32>>, names: &dyn Names) -> Vec<CpuReport> {
    sums.cpus
        .iter()
        .map(|cpu| cpu_report(sums, cpu.cpu, &cpu.state, subject, names))
        .collect()
}

/// Finds the thread that has a CPU to itself: one of `subject`, if given, with at least half of the
/// window.
fn poller<'s>(
    ran: &[(&'s Key, &'s Tally)],
    subject: Option<&BTreeSet<u32>>,
    window: u64,
) -> Option<(&'s Key, &'s Tally)> {
    let is_subject = |tid: u64| {
        subject.is_none_or(|tids| u32::try_from(tid).is_ok_and(|tid| tids.contains(&tid)))
    };
    ran.iter()
        .filter(|(key, _)| key.kind == kind::THREAD && key.id != 0 && is_subject(key.id))
        .max_by_key(|(_, tally)| tally.total)
        .filter(|(_, tally)| tally.total * 2 >= window)
        .copied()
}

fn cpu_report(
    sums: &Sums,
    cpu: u32,
    state: &State,
    subject: Option<&BTreeSet<u32>>,
    names: &dyn Names,
) -> CpuReport {
    let window = state.stop.saturating_sub(state.start);
    let context = Context {
        sums,
        names,
        start: state.start,
    };
    let mine: Vec<(&Key, &Tally)> = sums
        .tallies
        .iter()
        .filter(|(key, _)| key.cpu == cpu)
        .collect();
    let (waited, ran): (Vec<_>, Vec<_>) = mine
        .into_iter()
        .partition(|(key, _)| key.kind & kind::WAITED != 0);
    let poller = poller(&ran, subject, window);
    let (poller_key, had) = poller.map_or((None, Share::none()), |(key, tally)| {
        (Some(*key), Share::from_tally(tally))
    });
    let idle = ran
        .iter()
        .find(|(key, _)| key.kind == kind::THREAD && key.id == 0);
    let idle = idle.map_or(Share::none(), |(_, tally)| Share::from_tally(tally));
    let budget = budget(state, window, had, idle);
    let others = ran
        .iter()
        .filter(|(key, _)| Some(**key) != poller_key && (key.kind, key.id) != (kind::THREAD, 0));
    let mut intruders: Vec<Intruder> = others
        .map(|(key, tally)| context.intruder(key, tally))
        .collect();
    intruders.order_by_key(|intruder| Reverse((intruder.total, intruder.name.clone())));
    let in_lines: u64 = ran.iter().map(|(_, tally)| tally.total).sum();
    let nmi = state.totals[kind::NMI as usize].total;
    let all: u64 = state.totals.iter().map(|total| total.total).sum();
    let mut victims = victims(&context, cpu, state, &waited);
    victims.order_by_key(|victim| {
        Reverse((
            victim.still.is_some(),
            victim.who.longest,
            victim.who.name.clone(),
        ))
    });
    CpuReport {
        cpu,
        window,
        start: state.start,
        poller: poller_key.and_then(|key| Some(context.intruder(&key, sums.tallies.get(&key)?))),
        budget,
        intruders,
        victims,
        unnamed: all.saturating_sub(nmi).saturating_sub(in_lines),
        lost: state.lost + state.too_deep + state.unseen,
        unsent: state.unsent,
    }
}

#[cfg(test)]
mod tests;
