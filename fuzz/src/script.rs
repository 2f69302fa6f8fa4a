//! The fuzzer's input as a list of small damages to a valid trace.

use crate::bases::{Base, Place};
use crate::changing::Version;

/// The input, taken apart from its beginning.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn short(&mut self) -> Option<usize> {
        self.take()
            .map(|bytes| usize::from(u16::from_le_bytes(bytes)))
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// One of the base's fields.
    fn place(&mut self, base: &Base) -> Option<Place> {
        let index = self.short()?;
        base.places.get(index % base.places.len()).copied()
    }
}

/// The first state of the damaged file, and its later one: what comes behind the step "later" is in that only.
pub fn apply<'a>(base: &'a Base, script: &[u8]) -> (Version<'a>, Version<'a>) {
    let mut input = Input(script);
    let mut now = Version::new(&base.file.bytes);
    let mut first = None;
    while let Some(kind) = input.byte() {
        if kind % 8 == 7 {
            first.get_or_insert_with(|| now.clone());
        } else if step(kind % 8, &mut input, base, &mut now).is_none() {
            break;
        }
    }
    (first.unwrap_or_else(|| now.clone()), now)
}

/// One damage; `None` at the end of the input.
fn step(kind: u8, input: &mut Input<'_>, base: &Base, version: &mut Version<'_>) -> Option<()> {
    match kind {
        0 => {
            let place = input.place(base)?;
            set(version, place, input.number()?);
        }
        1 => {
            let place = input.place(base)?;
            let by = i64::from(input.byte()?.cast_signed());
            set(
                version,
                place,
                version
                    .number(place.at, place.width)
                    .wrapping_add_signed(by),
            );
        }
        2 => {
            let (from, to) = (input.place(base)?, input.place(base)?);
            set(version, to, version.number(from.at, from.width));
        }
        3 => slot(input, base, version)?,
        4 => {
            let [a, b, c, value] = input.take()?;
            let at = u32::from_le_bytes([a, b, c, 0]) as usize % base.file.bytes.len();
            version.pokes.push((at, vec![value]));
        }
        5 => {
            let [a, b, c] = input.take()?;
            // The file may also be longer than the base.
            version.len =
                u32::from_le_bytes([a, b, c, 0]) as usize % (base.file.bytes.len() * 9 / 8);
        }
        _ => {
            let small = input.place(base)?;
            set(version, small, u64::from(input.byte()?));
        }
    }
    Some(())
}

fn set(version: &mut Version<'_>, place: Place, value: u64) {
    version
        .pokes
        .push((place.at, value.to_le_bytes()[..place.width].to_vec()));
}

/// Overwrites a slot with a well-formed one: a record, or a continuation.
fn slot(input: &mut Input<'_>, base: &Base, version: &mut Version<'_>) -> Option<()> {
    let [place, id, tsc, object] = input.take()?;
    let layout = &base.file.layout;
    let lcores: Vec<_> = layout.lcores().take(2).collect();
    let lcore = lcores[usize::from(place >> 4) % lcores.len()];
    let continuation = layout.tpoint_count as u16;
    let id = [1, 2, 3, 5, 0, continuation, continuation, continuation][usize::from(id) % 8];
    let mut slot = [0; 32];
    // Beside the base's own times; 0 is "never written".
    let tsc = if tsc == 0 { 0 } else { 990 + u64::from(tsc) };
    slot[..8].copy_from_slice(&tsc.to_le_bytes());
    slot[8..10].copy_from_slice(&id.to_le_bytes());
    slot[10] = object >> 4;
    slot[16] = object & 15;
    slot[24] = object & 3;
    version
        .pokes
        .push((layout.slot(lcore, u64::from(place & 15)), slot.to_vec()));
    Some(())
}
