//! Thrift's compact protocol, as far as Parquet's headers and footer need it.

/// Type numbers in the headers of fields and lists.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
pub(crate) const I32: u8 = 5;
const I64: u8 = 6;
pub(crate) const BINARY: u8 = 8;
const LIST: u8 = 9;
pub(crate) const STRUCT: u8 = 12;

/// Writer of one struct; [`Self::structure`] writes nested ones.
#[derive(Debug)]
pub(crate) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl<'a> Struct<'a> {
    /// Writes a struct with these fields, and its end.
    pub(crate) fn write(out: &'a mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
        let mut this = Struct { out, last: 0 };
        fields(&mut this);
        this.out.push(0);
    }

    /// Writes the header of a field. Fields must come in the order of their numbers.
    fn field(&mut self, id: i16, kind: u8) {
        if let Ok(step @ 1..=15) = u8::try_from(id - self.last) {
            self.out.push(step << 4 | kind);
        } else {
            self.out.push(kind);
            varint(self.out, zigzag(id.into()));
        }
        self.last = id;
    }

    pub(crate) fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { TRUE } else { FALSE });
    }

    pub(crate) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        varint(self.out, zigzag(value.into()));
    }

    pub(crate) fn i64(&mut self, id: i16, value: i64) {
        self.field(id, I64);
        varint(self.out, zigzag(value));
    }

    pub(crate) fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, BINARY);
        bytes(self.out, value);
    }

    pub(crate) fn structure(&mut self, id: i16, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(id, STRUCT);
        Struct::write(self.out, fields);
    }

    /// Writes a list of elements of one type; `write` writes each element.
    pub(crate) fn list<T>(
        &mut self,
        id: i16,
        kind: u8,
        of: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        self.field(id, LIST);
        if let Ok(len @ 0..=14) = u8::try_from(of.len()) {
            self.out.push(len << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(self.out, of.len() as u64);
        }
        of.for_each(|one| write(self.out, one));
    }
}

/// Writes a number as a list element.
pub(crate) fn number(out: &mut Vec<u8>, value: i32) {
    varint(out, zigzag(value.into()));
}

/// Writes a text as a list element.
pub(crate) fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes a number in groups of 7 bits, lowest first.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps numbers near 0 of either sign to small unsigned ones.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_protocol_has_them() {
        let mut out = Vec::new();
        for value in [0, -1, 1, -64, 64, i64::MIN] {
            varint(&mut out, zigzag(value));
        }
        assert_eq!(out[..6], [0, 1, 2, 0x7f, 0x80, 0x01]);
        assert_eq!(
            out[6..],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    #[test]
    fn fields_are_numbered_by_their_steps() {
        let mut out = Vec::new();
        Struct::write(&mut out, |it| {
            it.i32(1, 5);
            it.bool(2, true);
            it.i32(20, -1);
            it.list(21, I32, [1, 2].into_iter(), number);
            it.structure(22, |it| it.binary(1, b"ab"));
        });
        assert_eq!(
            out,
            [
                0x15, 10, 0x11, 5, 40, 1, 0x19, 0x25, 2, 4, 0x1c, 0x18, 2, b'a', b'b', 0, 0
            ]
        );
    }
}
