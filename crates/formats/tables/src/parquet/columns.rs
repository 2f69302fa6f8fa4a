//! The rows of a group, by column.

use crate::parquet::text::Texts;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Signed 64-bit integers.
    Int,
    /// Booleans.
    Bool,
    /// Text in UTF-8.
    Text,
}

/// A column of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column.
    pub name: &'static str,
    /// Type of the column.
    pub kind: Kind,
    /// True if values may be missing.
    pub optional: bool,
}

/// The values of one column. A missing value is stored as 0, so that all columns have the same
/// length.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Ints(Vec<i64>),
    Bools(Vec<bool>),
    Texts { numbers: Vec<u32>, texts: Texts },
}

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) values: Values,
    /// Flags of the values that are present, if any may be missing.
    pub(crate) present: Option<Vec<bool>>,
}

/// Collected rows, by column.
#[derive(Clone, Debug)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
    text_bytes: usize,
}

impl Columns {
    /// Creates columns without rows.
    pub fn new(fields: &[Field]) -> Self {
        let values = |kind| match kind {
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Bool => Values::Bools(Vec::new()),
            Kind::Text => Values::Texts {
                numbers: Vec::new(),
                texts: Texts::default(),
            },
        };
        let column = |field: &Field| Column {
            values: values(field.kind),
            present: field.optional.then(Vec::<bool>::new),
        };
        Self {
            columns: fields.iter().map(column).collect(),
            text_bytes: 0,
        }
    }

    /// Adds a number to a column of numbers, or a missing one if the column allows it. Every column
    /// must get a value of its type for each row: a value of another type is not added, and the
    /// group then can't be written.
    #[inline]
    pub fn int(&mut self, column: usize, value: Option<i64>) {
        let Some(Column {
            values: Values::Ints(ints),
            present,
        }) = self.columns.get_mut(column)
        else {
            return;
        };
        ints.push(value.unwrap_or_default());
        if let Some(present) = present {
            present.push(value.is_some());
        }
    }

    /// Adds a boolean: see [`Self::int`].
    #[inline]
    pub fn bool(&mut self, column: usize, value: Option<bool>) {
        let Some(Column {
            values: Values::Bools(bools),
            present,
        }) = self.columns.get_mut(column)
        else {
            return;
        };
        bools.push(value.unwrap_or_default());
        if let Some(present) = present {
            present.push(value.is_some());
        }
    }

    /// Adds a text: see [`Self::int`].
    #[inline]
    pub fn text(&mut self, column: usize, value: Option<&str>) {
        let Some(Column {
            values: Values::Texts { numbers, texts },
            present,
        }) = self.columns.get_mut(column)
        else {
            return;
        };
        let before = texts.total();
        numbers.push(texts.number(value.unwrap_or_default()));
        self.text_bytes += texts.total() - before;
        if let Some(present) = present {
            present.push(value.is_some());
        }
    }

    /// Returns the number of rows, by the first column.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Returns the total size of the distinct texts, in bytes. Only texts have no fixed size.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Removes all rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.text_bytes = 0;
        for column in &mut self.columns {
            match &mut column.values {
                Values::Ints(ints) => ints.clear(),
                Values::Bools(bools) => bools.clear(),
                Values::Texts { numbers, texts } => {
                    numbers.clear();
                    texts.clear();
                }
            }
            column.present.iter_mut().for_each(Vec::clear);
        }
    }

    /// Sorts the rows by these columns, the first one first. A missing value counts as 0 or as
    /// empty text. The sort is stable.
    pub fn sort_by(&mut self, keys: &[usize]) {
        let keys: Vec<Vec<i64>> = keys
            .iter()
            .filter_map(|key| self.columns.get(*key))
            .map(Column::order)
            .collect();
        let rows = self.rows();
        if keys.iter().any(|key| key.len() != rows) {
            return;
        }
        let compare = |a: usize, b: usize| {
            keys.iter()
                .map(|key| key[a].cmp(&key[b]))
                .find(|it| it.is_ne())
        };
        if (1..rows).all(|row| compare(row - 1, row).is_none_or(std::cmp::Ordering::is_lt)) {
            return;
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order
            .sort_by(|a, b| compare(*a as usize, *b as usize).unwrap_or(std::cmp::Ordering::Equal));
        self.columns
            .iter_mut()
            .for_each(|column| column.reorder(&order));
    }
}

impl Column {
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::Ints(ints) => ints.len(),
            Values::Bools(bools) => bools.len(),
            Values::Texts { numbers, .. } => numbers.len(),
        }
    }

    /// Returns numbers that sort like the values.
    fn order(&self) -> Vec<i64> {
        match &self.values {
            Values::Ints(ints) => ints.clone(),
            Values::Bools(bools) => bools.iter().map(|it| i64::from(*it)).collect(),
            Values::Texts { numbers, texts } => {
                let ranks = texts.ranks();
                numbers
                    .iter()
                    .map(|number| i64::from(ranks[*number as usize]))
                    .collect()
            }
        }
    }

    fn reorder(&mut self, order: &[u32]) {
        fn by<T: Copy>(values: &mut Vec<T>, order: &[u32]) {
            *values = order
                .iter()
                .filter_map(|from| values.get(*from as usize).copied())
                .collect();
        }
        match &mut self.values {
            Values::Ints(ints) => by(ints, order),
            Values::Bools(bools) => by(bools, order),
            Values::Texts { numbers, .. } => by(numbers, order),
        }
        if let Some(present) = &mut self.present {
            by(present, order);
        }
    }
}
