//! Tables, and rows that are defined together with them.

use crate::parquet::{Columns, Field, Kind};

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Name of the table and of its folder.
    pub name: &'static str,
    /// Description of a row, in a sentence.
    pub about: &'static str,
    /// Columns of the table.
    pub columns: &'static [Column],
    /// Columns by which rows are sorted within each group, in ascending order.
    pub sorted_by: &'static [&'static str],
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name and type in the file.
    pub field: Field,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    /// Description, in a sentence.
    pub about: &'static str,
}

impl Table {
    /// Returns the columns as fields of a file.
    pub fn fields(&self) -> Vec<Field> {
        self.columns.iter().map(|column| column.field).collect()
    }

    /// Returns the indices of the columns by which rows are sorted.
    pub(crate) fn sort_keys(&self) -> Vec<usize> {
        let place = |name: &&str| {
            self.columns
                .iter()
                .position(|column| column.field.name == *name)
        };
        self.sorted_by.iter().filter_map(place).collect()
    }
}

/// A row of a table.
pub trait Row {
    /// Table of the row.
    const TABLE: Table;

    /// Adds the row to the columns of its table.
    fn put(&self, columns: &mut Columns);
}

/// A value of a row, whose type is that of the column.
pub(crate) trait Cell: Copy {
    const KIND: Kind;
    const OPTIONAL: bool;

    fn put(self, columns: &mut Columns, column: usize);
}

macro_rules! cell {
    ($type:ty, $kind:ident, $put:ident) => {
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;
            const OPTIONAL: bool = false;

            #[inline]
            fn put(self, columns: &mut Columns, column: usize) {
                columns.$put(column, Some(self));
            }
        }

        impl Cell for Option<$type> {
            const KIND: Kind = Kind::$kind;
            const OPTIONAL: bool = true;

            #[inline]
            fn put(self, columns: &mut Columns, column: usize) {
                columns.$put(column, self);
            }
        }
    };
}

cell!(i64, Int, int);
cell!(bool, Bool, bool);
cell!(&str, Text, text);

/// Defines a row's type and its table.
macro_rules! table {
    (
        #[about = $about:literal]
        #[sorted_by($($key:literal),*)]
        pub struct $row:ident, $name:literal {
            $($(#[unit = $unit:literal])? #[about = $column:literal] $field:ident: $type:ty,)*
        }
    ) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $row<'a> {
            $(#[doc = $column] pub $field: $type,)*
        }

        impl<'a> $crate::row::Row for $row<'a> {
            const TABLE: $crate::row::Table = $crate::row::Table {
                name: $name,
                about: $about,
                columns: &[$($crate::row::Column {
                    field: crate::parquet::Field {
                        name: stringify!($field),
                        kind: <$type as $crate::row::Cell>::KIND,
                        optional: <$type as $crate::row::Cell>::OPTIONAL,
                    },
                    unit: concat!($($unit)?),
                    about: $column,
                },)*],
                sorted_by: &[$($key),*],
            };

            #[inline]
            fn put(&self, columns: &mut crate::parquet::Columns) {
                let mut column = 0;
                $(
                    $crate::row::Cell::put(self.$field, columns, column);
                    column += 1;
                )*
                debug_assert_eq!(column, Self::TABLE.columns.len());
            }
        }
    };
}
pub(crate) use table;
