//! Rows and columns as data, and the choice of columns that fit a width.

use std::cmp::Ordering;
use std::sync::Arc;

use ordering::Order as _;

use crate::sample::{
    Connection, Cpu, CpuUse, Identity, Part, Phase, Poller, Share, Thread, Traffic,
};
use crate::{cpus, views};

/// Rank of columns that are not shown: what they tell does not exist for these rows.
pub(crate) const HIDDEN: u8 = u8::MAX;

/// Column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Title of the column.
    pub(crate) head: &'static str,
    /// Minimum width in columns of a terminal.
    pub(crate) width: usize,
    /// Maximum width, if there is room.
    pub(crate) most: usize,
    /// True if it is aligned right.
    pub(crate) right: bool,
    /// Rank in which columns get room: 0 first.
    pub(crate) rank: u8,
}

/// Contents of one cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Plain text.
    Text(String),
    /// Name, which can be shortened, and a figure, which can't.
    Named(String, String),
    /// Bar of a connection's request time by phase.
    Phases(Share<Phase>),
    /// Bar of a thread's time.
    Parts(Share<Part>),
    /// Bar of a CPU's time.
    Uses(Share<CpuUse>),
}

/// Subject of a row: stays the same while rows change their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    /// Connection.
    Connection(Arc<Identity>),
    /// Thread, by its number.
    Thread(u32),
    /// Stage, by its place.
    Stage(usize),
    /// CPU, by its number.
    Cpu(u32),
    /// Poller, by its address.
    Poller(u64),
}

/// Row of a table. Its cells are made when it is drawn: a screen shows only a few of a thousand
/// rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    /// Connection.
    Connection(&'a Connection),
    /// Thread.
    Thread(&'a Thread),
    /// Stage, by its place.
    Stage(&'a Traffic, usize),
    /// CPU.
    Cpu(&'a Cpu),
    /// Poller.
    Poller(&'a Poller),
}

impl Row<'_> {
    /// Returns its subject.
    pub(crate) fn id(&self) -> Id {
        match self {
            Self::Connection(connection) => Id::Connection(Arc::clone(&connection.identity)),
            Self::Thread(thread) => Id::Thread(thread.tid),
            Self::Stage(_, place) => Id::Stage(*place),
            Self::Cpu(cpu) => Id::Cpu(cpu.number),
            Self::Poller(poller) => Id::Poller(poller.address),
        }
    }

    /// Returns true if that is its subject.
    pub(crate) fn is(&self, id: &Id) -> bool {
        match (self, id) {
            (Self::Connection(connection), Id::Connection(identity)) => {
                connection.identity == *identity
            }
            (Self::Thread(thread), Id::Thread(tid)) => thread.tid == *tid,
            (Self::Stage(_, place), Id::Stage(stage)) => place == stage,
            (Self::Cpu(cpu), Id::Cpu(number)) => cpu.number == *number,
            (Self::Poller(poller), Id::Poller(address)) => poller.address == *address,
            _ => false,
        }
    }

    /// Returns the contents of its columns.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        match self {
            Self::Connection(connection) => views::connection_cells(connection),
            Self::Thread(thread) => views::thread_cells(thread),
            Self::Stage(traffic, place) => views::stage_cells(traffic, *place),
            Self::Cpu(cpu) => cpus::cells(cpu),
            Self::Poller(poller) => views::poller_cells(poller),
        }
    }
}

/// Table in the order in which it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Table<'a> {
    pub(crate) columns: &'static [Column],
    /// Column by which it is ordered, and true if the largest is last.
    pub(crate) order: (usize, bool),
    pub(crate) rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    /// Orders what is found by the numbers of the ordering column, the largest first, and by `ties`
    /// where these are equal; all reversed if the largest is to be last.
    pub(crate) fn ordered<T>(
        columns: &'static [Column],
        order: (usize, bool),
        found: impl Iterator<Item = T>,
        number: impl Fn(&T) -> f64,
        ties: impl Fn(&T, &T) -> Ordering,
        row: impl Fn(T) -> Row<'a>,
    ) -> Self {
        let mut found: Vec<(f64, T)> = found.map(|it| (number(&it), it)).collect();
        found.order_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| ties(one, other)));
        if order.1 {
            found.reverse();
        }
        Self {
            columns,
            order,
            rows: found.into_iter().map(|(_, it)| row(it)).collect(),
        }
    }
}

impl Table<'_> {
    /// Returns the columns that fit for rows with these cells, each with its width. Columns of rank
    /// 0 are always there.
    pub(crate) fn fit(&self, width: usize, rows: &[Vec<Cell>]) -> Vec<(usize, usize)> {
        let is_shown = |index: &usize| self.columns[*index].rank != HIDDEN;
        let mut by_rank: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        by_rank.order_by_key(|&index| self.columns[index].rank);
        let (mut used, mut chosen) = (0, Vec::new());
        for index in by_rank {
            let needed = self.columns[index].width + usize::from(used > 0);
            if self.columns[index].rank == 0 || used + needed <= width {
                used += needed;
                chosen.push((index, self.columns[index].width));
            }
        }
        chosen.order();
        grow(self.columns, rows, &mut chosen, width.saturating_sub(used));
        chosen
    }
}

/// Spreads the room that is left over columns whose contents can use it.
fn grow(columns: &[Column], rows: &[Vec<Cell>], chosen: &mut [(usize, usize)], mut left: usize) {
    let wanted = |index: usize| {
        let texts = rows.iter().map(|cells| match &cells[index] {
            Cell::Text(text) => screen::columns(text),
            Cell::Named(name, figure) => screen::columns(name) + 1 + screen::columns(figure),
            Cell::Phases(_) | Cell::Parts(_) | Cell::Uses(_) => usize::MAX,
        });
        texts.max().unwrap_or(0).min(columns[index].most)
    };
    let wants: Vec<usize> = chosen.iter().map(|&(index, _)| wanted(index)).collect();
    loop {
        let mut grown = false;
        for ((_, width), want) in chosen.iter_mut().zip(&wants) {
            if left > 0 && *width < *want {
                *width += 1;
                left -= 1;
                grown = true;
            }
        }
        if !grown {
            return;
        }
    }
}

/// Fits text into that number of columns.
pub(crate) fn fitted(text: &str, width: usize, right: bool) -> String {
    let text = screen::shorten(text, width);
    if right {
        screen::pad_left(&text, width)
    } else {
        screen::pad(&text, width)
    }
}

/// Fits a name and a figure into that number of columns: the name has the room that the figure
/// leaves.
pub(crate) fn fitted_name(name: &str, figure: &str, width: usize) -> String {
    let room = width.saturating_sub(screen::columns(figure) + 1);
    if room == 0 {
        return fitted(name, width, false);
    }
    screen::pad(&format!("{} {figure}", screen::cut(name, room)), width)
}

/// Formats a number with at most three digits and a unit: `999`, `12.3k`, `4.56M`.
pub(crate) fn number(value: f64) -> String {
    let units = ["", "k", "M", "G", "T"];
    let (mut value, mut unit) = (value.max(0.0), 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let decimals = match (unit, value) {
        (0, v) if v >= 9.95 || v.fract() == 0.0 => 0,
        (0, _) => 1,
        (_, v) if v < 9.995 => 2,
        (_, v) => usize::from(v < 99.95),
    };
    format!("{value:.decimals$}{}", units[unit])
}

/// Formats a share (0 to 1) in percent: small ones with a decimal.
pub(crate) fn percent(share: f64) -> String {
    screen::percent(share, usize::from(share > 0.0 && share < 0.0995))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column {
            head: "NAME",
            width: 4,
            most: 20,
            right: false,
            rank: 0,
        },
        Column {
            head: "A",
            width: 6,
            most: 6,
            right: true,
            rank: 2,
        },
        Column {
            head: "B",
            width: 6,
            most: 6,
            right: true,
            rank: 1,
        },
    ];

    fn fit(name: &str, width: usize) -> Vec<(usize, usize)> {
        let cells = [name, "1", "2"]
            .map(|text| Cell::Text(text.to_owned()))
            .to_vec();
        Table {
            columns: &COLUMNS,
            order: (0, false),
            rows: Vec::new(),
        }
        .fit(width, &[cells])
    }

    #[test]
    fn columns_get_room_by_their_rank() {
        assert_eq!(fit("x", 80), [(0, 4), (1, 6), (2, 6)]);
        assert_eq!(fit("a-long-name", 30), [(0, 11), (1, 6), (2, 6)]);
        assert_eq!(fit("a-long-name", 20), [(0, 6), (1, 6), (2, 6)]);
        assert_eq!(fit("a-long-name", 15), [(0, 8), (2, 6)]);
        assert_eq!(fit("x", 1), [(0, 4)]);
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [
            0.0, 3.25, 9.96, 42.4, 999.4, 1000.0, 12_345.0, 999_600.0, 4.56e6,
        ];
        assert_eq!(
            numbers.map(number),
            [
                "0", "3.2", "10", "42", "999", "1.00k", "12.3k", "1.00M", "4.56M"
            ]
        );
        assert_eq!(
            [0.0, 0.004, 0.5, 1.0].map(percent),
            ["0%", "0.4%", "50%", "100%"]
        );
        let named = [16, 12, 9, 6].map(|width| fitted_name("rustc [7]", "246 ms", width));
        assert_eq!(
            named,
            ["rustc [7] 246 ms", "rust… 246 ms", "r… 246 ms", "ru…[7]"].map(str::to_owned)
        );
        assert_eq!(
            (fitted("abcdef", 4, false), fitted("ab", 4, true)),
            ("a…ef".to_owned(), "  ab".to_owned())
        );
    }
}
