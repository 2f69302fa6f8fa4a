//! Finds globals from objects: a program without symbols does not name its lists, but their
//! elements lead to the heads.

use std::collections::BTreeMap;

use live_memory::{Memory, MemoryError, Scalar as Value};
use objects::{AliveSpec, ObjectSpec};

use crate::alive::agree;
use crate::alive::compile::{CompiledSpec, Program};
use crate::alive::walk::MAX_ELEMENTS;

/// Limit on the objects asked for the same global. Others outvote one that is misread while it
/// changes.
const MAX_WITNESSES: usize = 64;

/// Returns the addresses of globals to which the objects at these addresses lead, by name (`roots`
/// of [`AliveSpec`]). Skips addresses without such an object. If objects disagree, the majority
/// wins.
pub fn roots(
    spec: &ObjectSpec,
    program: &Program<'_>,
    pointers: &[u64],
    memory: &dyn Memory,
) -> BTreeMap<String, u64> {
    let Some(leading) = leading(spec) else {
        return BTreeMap::new();
    };
    let Ok(compiled) = CompiledSpec::compile_pointers(&leading, program) else {
        return BTreeMap::new();
    };
    let reading = compiled.read_at(pointers, memory);
    let found = agree(&reading, reading.clone());
    let mut votes: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
    for object in found.objects.iter().take(MAX_WITNESSES) {
        for (at, (name, value)) in compiled.names().iter().zip(&object.values).enumerate() {
            if at != compiled.key()
                && let Value::Int(link) = value
                && let Some(head) = list_head(*link, memory)
            {
                *votes.entry(name).or_default().entry(head).or_default() += 1;
            }
        }
    }
    let most = |votes: BTreeMap<u64, usize>| {
        votes
            .into_iter()
            .max_by_key(|&(_, count)| count)
            .map(|(head, _)| head)
    };
    votes
        .into_iter()
        .filter_map(|(name, votes)| Some((name.to_owned(), most(votes)?)))
        .collect()
}

/// Returns the spec with its roots in place of its values.
fn leading(spec: &ObjectSpec) -> Option<ObjectSpec> {
    let mut leading = spec.clone();
    leading.alive.retain(|alive| !alive.roots.is_empty());
    for AliveSpec { values, roots, .. } in &mut leading.alive {
        values.retain(|value| value.arg.name == spec.key);
        values.append(roots);
    }
    (!leading.alive.is_empty()).then_some(leading)
}

/// Returns the head of the list (`TAILQ`) to which an element belongs. `link` is the element's
/// `tqe_prev`: the address of the pointer to it, either in the head or in the element before it.
/// The word after that pointer is
///
/// - in an element, its own `tqe_prev`: the address of a pointer to it, which is not 0,
/// - in the head, `tqh_last`: the address of the last element's `tqe_next`, which is 0
///   (`<sys/queue.h>`).
fn list_head(mut link: u64, memory: &dyn Memory) -> Option<u64> {
    for _ in 0..MAX_ELEMENTS {
        let behind = word(link.checked_add(8)?, memory).ok()?;
        if word(behind, memory).ok()? == 0 {
            return Some(link);
        }
        link = behind;
    }
    None
}

fn word(at: u64, memory: &dyn Memory) -> Result<u64, MemoryError> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use live_memory::Image;

    use super::*;

    #[test]
    fn the_head_is_found_from_each_element() {
        // Head at 0x100; elements at 0x200, 0x300 and 0x400, with links at offset 0x10.
        let mut image = Image::new();
        let mut put = |at: u64, values: [u64; 2]| {
            image.write(at, &values[0].to_le_bytes());
            image.write(at + 8, &values[1].to_le_bytes());
        };
        put(0x100, [0x200, 0x410]);
        put(0x210, [0x300, 0x100]);
        put(0x310, [0x400, 0x210]);
        put(0x410, [0, 0x310]);
        for link in [0x100, 0x210, 0x310] {
            assert_eq!(list_head(link, &image), Some(0x100), "{link:#x}");
        }
        assert_eq!(list_head(0x800, &image), None, "not mapped");
        assert_eq!(list_head(u64::MAX, &image), None);
        // Elements that point back to each other.
        let mut image = Image::new();
        for (at, behind) in [(0x500, 0x600_u64), (0x600, 0x500)] {
            image.write(at, &1_u64.to_le_bytes());
            image.write(at + 8, &behind.to_le_bytes());
        }
        assert_eq!(list_head(0x500, &image), None);
    }
}
