//! Victims of a CPU: threads, work and soft interrupts that waited for it.

use crate::audit::layout::{Key, State, Tally, kind};
use crate::audit::model::{Context, Intruder, Victim};
use crate::audit::sums::Sums;

/// Returns the victims: those whose waits are over, and those still waiting.
pub(super) fn victims(
    context: &Context<'_>,
    cpu: u32,
    state: &State,
    waited: &[(&Key, &Tally)],
) -> Vec<Victim> {
    let over = |(key, tally): &(&Key, &Tally)| Victim {
        before: tally.longest_at != 0 && tally.longest_at <= state.start,
        who: context.intruder(key, tally),
        still: None,
    };
    let mut victims: Vec<Victim> = waited.iter().map(over).collect();
    for (key, since, tally) in open_waits(context.sums, cpu, state) {
        let who = context.intruder(&key, &tally);
        add_open(&mut victims, who, since, state);
    }
    victims
}

/// Returns the waits that are not over: of threads, work and soft interrupts, each with its start.
fn open_waits(sums: &Sums, cpu: u32, state: &State) -> Vec<(Key, u64, Tally)> {
    let mut open: Vec<(Key, u64, Tally)> = Vec::new();
    let key = |kind: u32, id: u64| Key {
        cpu,
        kind: kind | kind::WAITED,
        id,
        ..Key::default()
    };
    for (tid, waiting) in sums
        .waiting
        .iter()
        .filter(|(_, waiting)| waiting.cpu == cpu)
    {
        let tally = Tally {
            name: waiting.name,
            tgid: waiting.tgid,
            ..Tally::default()
        };
        open.push((key(kind::THREAD, (*tid).into()), waiting.since, tally));
    }
    for (_, item) in sums
        .queued
        .iter()
        .filter(|(_, item)| u32::try_from(item.cpu) == Ok(cpu))
    {
        let mut tally = Tally::default();
        tally
            .name
            .iter_mut()
            .zip(item.queue)
            .for_each(|(to, from)| *to = from);
        let key = Key {
            by: item.stack,
            by_kind: kind::STACK,
            ..key(kind::WORK, item.function)
        };
        open.push((key, item.since, tally));
    }
    for (vector, raised) in (0..)
        .zip(&state.raised)
        .filter(|(_, raised)| raised.at != 0)
    {
        open.push((key(kind::SOFT, vector), raised.at, Tally::default()));
    }
    open
}

/// Adds a wait that is not over to the victim with this name, or as a new one.
fn add_open(victims: &mut Vec<Victim>, who: Intruder, since: u64, state: &State) {
    let same = |victim: &&mut Victim| {
        victim.still.is_none() && (victim.who.kind, &victim.who.name) == (who.kind, &who.name)
    };
    let nanos = state.stop.saturating_sub(since);
    let mut victim = match victims.iter_mut().find(same) {
        Some(victim) => std::mem::replace(
            victim,
            Victim {
                still: Some(0),
                before: false,
                who: who.clone(),
            },
        ),
        None => Victim {
            who,
            still: None,
            before: false,
        },
    };
    victims.retain(|victim| victim.still != Some(0));
    victim.still = Some(nanos.max(1));
    victim.before |= since <= state.start;
    victim.who.count += 1;
    victim.who.total += nanos;
    if nanos >= victim.who.longest {
        (victim.who.longest, victim.who.longest_at) = (nanos, since.saturating_sub(state.start));
    }
    victims.push(victim);
}
