//! Parts of types: parameters, members and values of enumerations.

use crate::btf::decode::{Kind, Record};
use crate::error::TypeError;
use crate::model::{Enumerator, Member, Param};

impl<'b> Record<'b, '_> {
    pub(super) fn params(&self) -> Result<Vec<Param<'b>>, TypeError> {
        if !matches!(self.kind, Kind::Func | Kind::FuncProto) {
            return Ok(Vec::new());
        }
        let proto = self.proto()?;
        let mut params = Vec::with_capacity(proto.parts());
        for index in 0..proto.parts() {
            let (name, id) = (proto.word(index * 2)?, proto.word(index * 2 + 1)?);
            // A variadic function has a last parameter of type 0.
            if id != 0 || index + 1 < proto.parts() {
                params.push(Param {
                    name: proto.text(name, proto.at + 12 + index * 8)?,
                    ty: proto.check(id)?,
                });
            }
        }
        Ok(params)
    }

    pub(super) fn members(&self) -> Result<Vec<Member<'b>>, TypeError> {
        if !matches!(self.kind, Kind::Struct | Kind::Union) {
            return Ok(Vec::new());
        }
        (0..self.parts()).map(|index| self.member(index)).collect()
    }

    fn member(&self, index: usize) -> Result<Member<'b>, TypeError> {
        let name = self.text(self.word(index * 3)?, self.at + 12 + index * 12)?;
        let (id, place) = (self.word(index * 3 + 1)?, self.word(index * 3 + 2)?);
        let ty = self.check(id)?;
        let (bit_offset, bits) = if self.flag() {
            (place & 0x00ff_ffff, place >> 24)
        } else {
            (place, 0)
        };
        let (bit_offset, bits) = if bits == 0 {
            self.old_bits(id, bit_offset)
        } else {
            (bit_offset, Some(bits))
        };
        Ok(Member {
            name,
            ty,
            bit_offset: bit_offset.into(),
            bit_size: bits,
        })
    }

    /// Decodes a bit-field of pahole before 1.13, when structs had no flag: its type was an integer
    /// with fewer bits than its bytes hold.
    fn old_bits(&self, id: u32, bit_offset: u32) -> (u32, Option<u32>) {
        let int = self
            .btf
            .record(id)
            .ok()
            .filter(|record| record.kind == Kind::Int);
        let encoding = int.and_then(|int| Some((int.word(0).ok()?, int.size_or_type().ok()?)));
        match encoding {
            Some((encoding, size))
                if encoding & 0xff != 0 && u64::from(encoding & 0xff) < u64::from(size) * 8 =>
            {
                (
                    bit_offset.saturating_add(encoding >> 16 & 0xff),
                    Some(encoding & 0xff),
                )
            }
            _ => (bit_offset, None),
        }
    }

    pub(super) fn enumerators(&self) -> Result<Vec<Enumerator<'b>>, TypeError> {
        if !matches!(self.kind, Kind::Enum | Kind::Enum64) {
            return Ok(Vec::new());
        }
        let width = self.kind.each() / 4;
        let one = |index: usize| {
            let name = self.text(self.word(index * width)?, self.at + 12 + index * width * 4)?;
            Ok(Enumerator {
                name: name.unwrap_or_default(),
                value: self.value(index * width)?,
            })
        };
        (0..self.parts()).map(one).collect()
    }

    /// Reads the value of the enumerator at this word.
    fn value(&self, at: usize) -> Result<i64, TypeError> {
        let low = self.word(at + 1)?;
        if self.kind == Kind::Enum64 {
            return Ok((u64::from(self.word(at + 2)?) << 32 | u64::from(low)).cast_signed());
        }
        Ok(if self.flag() {
            i64::from(low.cast_signed())
        } else {
            i64::from(low)
        })
    }

    /// Returns the value of the enumerator of this name; `None` if this is not an enumeration that
    /// has it.
    pub(super) fn enumerator(&self, name: &str) -> Result<Option<i64>, TypeError> {
        if !matches!(self.kind, Kind::Enum | Kind::Enum64) {
            return Ok(None);
        }
        let width = self.kind.each() / 4;
        for index in 0..self.parts() {
            if self.btf.bytes_at(self.word(index * width)?) == Some(name.as_bytes()) {
                return self.value(index * width).map(Some);
            }
        }
        Ok(None)
    }
}
