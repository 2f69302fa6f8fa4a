//! Details of a CPU: its second by user, the intruders with their causes, and the victims.

use ratatui_core::text::{Line, Span};

use super::look::{HEAD, Look as _, QUIET, TerminalCaps};
use super::rows;
use crate::cpus::named;
use crate::model::Model;
use crate::sample::{CpuTask, CpuUse, Kind as _};
use crate::table::percent;

/// Returns the lines of the details.
pub(super) fn lines<'a>(
    model: &Model,
    look: TerminalCaps,
    number: u32,
    width: usize,
) -> Vec<Line<'a>> {
    let Some(cpu) = model
        .sample()
        .cpus
        .iter()
        .flatten()
        .find(|cpu| cpu.number == number)
    else {
        return vec![Line::styled("it is absent in this second", QUIET)];
    };
    let owner = cpu.owner.as_ref().map_or(
        "no thread of the process has it to itself".to_owned(),
        |owner| {
            format!(
                "{owner} has it for {}",
                percent(cpu.uses.share(CpuUse::Owner))
            )
        },
    );
    let mut bar = vec![Span::raw("now           ")];
    bar.extend(rows::bar(&cpu.uses, width.saturating_sub(15), |part, c| {
        look.use_of(part, c)
    }));
    let mut lines = vec![
        Line::raw(owner),
        Line::from(bar),
        rows::legend::<CpuUse>(|part, c| look.use_of(part, c)),
    ];
    for (part, _, name) in CpuUse::ALL {
        let nanos = cpu.uses.get(*part);
        if nanos > 0 {
            let share = percent(cpu.uses.share(*part));
            lines.push(Line::raw(format!(
                "{name:<18}{:>9} {share:>6}",
                screen::time(nanos)
            )));
        }
    }
    lines.extend(takers("intruders", &cpu.intruders, width));
    lines.extend(takers(
        "victims: could run, but had to wait",
        &cpu.victims,
        width,
    ));
    if cpu.lost > 0 {
        lines.push(Line::styled(
            format!("{} found no room in the kernel's maps", cpu.lost),
            look.warn(),
        ));
    }
    lines
}

/// Returns a list with a title. The cause of each line follows on a line of its own.
fn takers<'a>(title: &'static str, all: &[CpuTask], width: usize) -> Vec<Line<'a>> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::styled(
        format!("{title:<38}{:>7} {:>9} {:>9}", "count", "total", "longest"),
        HEAD,
    )];
    for taker in all {
        let name = screen::pad(&screen::shorten(&named(taker), 36), 36);
        let [total, longest] =
            [taker.nanos, taker.longest].map(|nanos| screen::pad_left(&screen::time(nanos), 9));
        lines.push(Line::raw(format!(
            "  {name}{:>7} {total} {longest}",
            taker.count
        )));
        let still = taker
            .still
            .map(|nanos| format!("still waits, for {}", screen::time(nanos)));
        let facts: Vec<String> = still.into_iter().chain(taker.cause.clone()).collect();
        if !facts.is_empty() {
            lines.push(Line::styled(
                screen::cut(&format!("    {}", facts.join(", ")), width).into_owned(),
                QUIET,
            ));
        }
    }
    lines
}
