//! Elements of a map whose keys have stacks.

use super::{Cell, Table};
use crate::value::Value;

impl Table {
    /// Returns the stacks of the elements whose keys have some in the mode `folded`, outermost frame
    /// first, with the number of the element. Other parts of a key are frames, too. Elements whose
    /// value is no positive number are left out.
    pub fn stacks(&self) -> Vec<(Vec<String>, u64)> {
        let of_row = |(key, cell): &(Value, Cell)| {
            let parts = match key {
                Value::Tuple(parts) => parts.as_slice(),
                key => std::slice::from_ref(key),
            };
            let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            let has_stack = texts.iter().any(|text| text.starts_with(';'));
            let frames = texts.iter().flat_map(|text| match text.strip_prefix(';') {
                Some(stack) => stack.split(';').map(str::to_owned).collect(),
                None => vec![text.clone()],
            });
            // A stack without a frame is an empty text.
            let frames = frames.filter(|frame| !frame.is_empty());
            let weight = u64::try_from(weight(cell)?).ok()?;
            has_stack.then(|| (frames.collect(), weight))
        };
        self.rows.iter().filter_map(of_row).collect()
    }
}

/// Returns the number of an element: its value, or the sum of `stats`.
fn weight(cell: &Cell) -> Option<i128> {
    match cell {
        Cell::Value(Value::Record(fields)) => {
            let total = fields.iter().find(|(name, _)| name == "total")?;
            total.1.number()
        }
        Cell::Value(value) => value.number(),
        Cell::Histogram(_) | Cell::Series(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Kind;

    #[test]
    fn stacks_are_outermost_first_with_the_rest_of_the_key() {
        let number = |number| Cell::Value(Value::Int(number));
        let key =
            |parts: &[&str]| Value::Tuple(parts.iter().map(|part| Value::text(*part)).collect());
        let table = Table {
            name: "@".to_owned(),
            kind: Kind::Map,
            is_scalar: false,
            rows: vec![
                (key(&["app", ";main;read", ";vfs_read"]), number(7)),
                (key(&["app", ";main", ""]), number(1)),
                (Value::text(";main"), number(2)),
                (Value::text("no stack"), number(3)),
                (Value::text(";gone"), number(-1)),
            ],
        };
        let frames = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            table.stacks(),
            [
                (frames(&["app", "main", "read", "vfs_read"]), 7),
                (frames(&["app", "main"]), 1),
                (frames(&["main"]), 2)
            ]
        );
    }
}
