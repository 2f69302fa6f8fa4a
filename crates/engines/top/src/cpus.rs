//! The CPUs of a process's pollers: the table of their tab, and a summary of the second in words.

use crate::sample::{Cpu, CpuTask, CpuUse, Sample};
use crate::table::{Cell, Column, Row, Table, percent};
use crate::views::{figure, matches, text, time};

/// Columns of the tab.
pub(crate) const CPUS: &[Column] = &[
    figure("CPU", 3, 0),
    text("OWNER", 12, 30, 1),
    text("TIME", 12, 60, 2),
    figure("TAKEN", 6, 0),
    figure("LONGEST", 7, 5),
    text("WORST INTRUDER", 18, 44, 3),
    text("WORST VICTIM", 18, 36, 4),
];

/// Returns the CPUs of a second in that order: the largest number of the column first, or last if
/// the order is reversed.
pub(crate) fn table<'a>(sample: &'a Sample, order: (usize, bool), filter: &str) -> Table<'a> {
    Table::ordered(
        CPUS,
        order,
        sample
            .cpus
            .iter()
            .flatten()
            .filter(|cpu| is_wanted(cpu, filter)),
        |cpu| number(cpu, order.0),
        |a, b| a.number.cmp(&b.number),
        Row::Cpu,
    )
}

fn is_wanted(cpu: &Cpu, filter: &str) -> bool {
    let number = format!("cpu{}", cpu.number);
    let worst = [cpu.intruders.first(), cpu.victims.first()]
        .map(|taker| taker.map_or("", |taker| taker.name.as_str()));
    matches(
        filter,
        &[
            &number,
            cpu.owner.as_deref().unwrap_or_default(),
            worst[0],
            worst[1],
        ],
    )
}

/// Returns the number by which a column is ordered, the largest first; 0 for columns ordered by the
/// CPU's number.
fn number(cpu: &Cpu, column: usize) -> f64 {
    let nanos = |taker: Option<&CpuTask>| taker.map_or(0.0, |taker| taker.nanos as f64);
    match CPUS[column.min(CPUS.len() - 1)].head {
        "TIME" => 1.0 - cpu.uses.share(CpuUse::Idle),
        "TAKEN" => cpu.taken(),
        "LONGEST" => longest(cpu) as f64,
        "WORST INTRUDER" => nanos(cpu.intruders.first()),
        "WORST VICTIM" => cpu
            .victims
            .first()
            .map_or(0.0, |victim| victim.longest as f64),
        _ => 0.0,
    }
}

/// Returns the longest time that somebody else had the CPU at once, in nanoseconds.
pub(crate) fn longest(cpu: &Cpu) -> u64 {
    cpu.intruders
        .iter()
        .map(|intruder| intruder.longest)
        .max()
        .unwrap_or(0)
}

pub(crate) fn cells(cpu: &Cpu) -> Vec<Cell> {
    let none = || Cell::Text("-".to_owned());
    let owner = cpu
        .owner
        .as_ref()
        .map(|owner| Cell::Named(owner.clone(), percent(cpu.uses.share(CpuUse::Owner))));
    let intruder = cpu
        .intruders
        .first()
        .map(|it| Cell::Named(named(it), screen::time(it.nanos)));
    let victim = cpu
        .victims
        .first()
        .map(|it| Cell::Named(named(it), screen::time(it.longest)));
    vec![
        Cell::Text(cpu.number.to_string()),
        owner.unwrap_or_else(none),
        Cell::Uses(cpu.uses),
        Cell::Text(percent(cpu.taken())),
        Cell::Text(time(longest(cpu), longest(cpu))),
        intruder.unwrap_or_else(none),
        victim.unwrap_or_else(none),
    ]
}

/// Returns the name of an intruder or a victim: a thread by its name, any other with its kind.
pub(crate) fn named(taker: &CpuTask) -> String {
    match taker.kind {
        "thread" => taker.name.clone(),
        // Without a name of its own, it is called by its kind.
        kind if taker.name == kind => taker.name.clone(),
        kind => format!("{kind} {}", taker.name),
    }
}

/// Returns a summary of the second in words.
pub(crate) fn summary(cpus: &[Cpu]) -> String {
    let Some(worst) = cpus.iter().max_by(|a, b| a.taken().total_cmp(&b.taken())) else {
        return "no CPUs are audited".to_owned();
    };
    let by = worst
        .intruders
        .first()
        .map(|it| format!(", {} of it {}", screen::time(it.nanos), named(it)));
    let (count, by) = (
        screen::counted(cpus.len() as u64, "CPU"),
        by.unwrap_or_default(),
    );
    let taken = screen::time(worst.uses.taken());
    format!(
        "{count} of pollers; most was taken of CPU {}: {taken} ({}){by}",
        worst.number,
        percent(worst.taken())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Share;

    fn cpu(number: u32, taken: u64) -> Cpu {
        let mut uses: Share<CpuUse> = Share::default();
        uses.add(CpuUse::Owner, 1000 - taken);
        uses.add(CpuUse::Soft, taken);
        let intruder = CpuTask {
            kind: "soft interrupt",
            name: "NET_RX".into(),
            nanos: taken,
            ..CpuTask::default()
        };
        let owner = Some(format!("reactor_{number} [7]"));
        Cpu {
            number,
            window: 1000,
            owner,
            uses,
            intruders: vec![intruder],
            ..Cpu::default()
        }
    }

    #[test]
    fn the_cpu_of_which_most_was_taken_is_first() {
        let sample = Sample {
            cpus: Some(vec![cpu(1, 20), cpu(2, 300), cpu(3, 20)]),
            ..Sample::default()
        };
        let numbers = |order, filter: &str| -> Vec<String> {
            let of = |row: &Row<'_>| match &row.cells()[0] {
                Cell::Text(text) => text.clone(),
                _ => String::new(),
            };
            table(&sample, order, filter).rows.iter().map(of).collect()
        };
        assert_eq!(numbers((3, false), ""), ["2", "1", "3"]);
        assert_eq!(numbers((0, false), ""), ["1", "2", "3"]);
        assert_eq!(numbers((0, true), "reactor_3"), ["3"]);
        assert_eq!(
            (
                numbers((0, false), "net_rx").len(),
                numbers((0, false), "cpu2").len()
            ),
            (3, 1)
        );
        let said = summary(sample.cpus.as_deref().unwrap_or_default());
        assert_eq!(
            said,
            "3 CPUs of pollers; most was taken of CPU 2: 300 ns (30%), 300 ns of it soft interrupt \
             NET_RX"
        );
    }
}
