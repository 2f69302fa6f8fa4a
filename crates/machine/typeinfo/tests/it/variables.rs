//! Variables by name, compared with the symbol table of GCC's output.

use crate::common::gcc;
use typeinfo::{Arch, Dwarf, DwarfSections, NameKind, TypeStore};

const SOURCE: &str = "
struct conn { int id; struct conn *next; };
enum state { IDLE, BUSY = 5 };
extern struct conn g_shared;
extern char **environ;
struct conn g_shared = { 1, 0 };
static struct conn *g_conns[4] = { &g_shared };
static enum state g_state = BUSY;
__thread int t_local = 3;
int main(void) { static int g_within = 1; return environ != 0 && g_conns[0]->id + g_state + t_local + g_within; }
";

#[test]
fn variables_have_their_types_and_addresses() {
    for options in [
        ["-g", "-gdwarf-5", "-O0"],
        ["-g", "-gdwarf-4", "-O0"],
        ["-g", "-gdwarf-3", "-O0"],
    ] {
        let Some(elf) = gcc(SOURCE, &options) else {
            return;
        };
        let mut types = TypeStore::new(Arch::HOST);
        let source = types
            .add_dwarf(Dwarf::new(DwarfSections::from_elf(&elf).unwrap()).unwrap())
            .unwrap();
        let image = elf::ElfImage::parse(&elf).unwrap();
        let address = |name| elf::symbols::find(&image, name).map(|(address, _)| address.0);
        for (name, ty) in [
            ("g_shared", "struct conn"),
            ("g_conns", "struct conn *[4]"),
            ("g_state", "enum state"),
        ] {
            let found = types.variables(source, name).unwrap();
            let found: Vec<_> = found.into_iter().filter(|it| it.is_defined).collect();
            assert_eq!(found.len(), 1, "{name} {options:?}");
            assert_eq!(types.display(found[0].ty), ty);
            assert_eq!(found[0].address, address(name), "{name}");
            assert!(found[0].unit.is_some_and(|unit| unit.ends_with("a.c")));
        }
        let declared = types.variables(source, "environ").unwrap();
        assert_eq!(
            (declared.len(), declared[0].is_defined, declared[0].address),
            (1, false, None)
        );
        assert_eq!(types.display(declared[0].ty), "char **");
        let local = types.variables(source, "t_local").unwrap();
        assert_eq!(
            (local.len(), local[0].address),
            (1, None),
            "a variable of each thread has no address"
        );
        assert!(
            types.variables(source, "g_within").unwrap().is_empty(),
            "those within functions are left out"
        );
        assert!(types.variables(source, "nothing").unwrap().is_empty());
        // Types and enumerators of the same source, before any index is made.
        assert!(
            types
                .find_in(source, NameKind::Struct, "conn")
                .unwrap()
                .is_some()
        );
        assert_eq!(
            types
                .find_enumerator("BUSY")
                .unwrap()
                .map(|(_, value)| value),
            Some(5)
        );
        assert_eq!(types.find_enumerator("busy").unwrap(), None);
    }
}

/// After many look-ups the names of all units are read at once; the answers are the same.
#[test]
fn many_names_are_found_as_few_are() {
    let structs: String = (0..200).fold(String::new(), |text, number| {
        text + &format!("struct s{number} {{ int m{number}; }} v{number};\n")
    });
    let Some(elf) = gcc(&(structs + "int main(void) { return 0; }"), &["-g"]) else {
        return;
    };
    let mut types = TypeStore::new(Arch::HOST);
    let source = types
        .add_dwarf(Dwarf::new(DwarfSections::from_elf(&elf).unwrap()).unwrap())
        .unwrap();
    for number in 0..200 {
        let found = types
            .find_in(source, NameKind::Struct, &format!("s{number}"))
            .unwrap()
            .unwrap();
        assert_eq!(
            types.members(found).unwrap()[0].name,
            Some(format!("m{number}").as_str())
        );
        let variable = types.variables(source, &format!("v{number}")).unwrap();
        assert_eq!(types.display(variable[0].ty), format!("struct s{number}"));
    }
    assert_eq!(
        types.find_in(source, NameKind::Struct, "s200").unwrap(),
        None
    );
}

/// Bytes of a section in memory, read in parts.
struct Section(Vec<u8>);

impl typeinfo::ReadSection for Section {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let from = self
            .0
            .get(offset as usize..)
            .and_then(|rest| rest.get(..into.len()));
        from.map(|from| into.copy_from_slice(from)).is_some()
    }
}

/// Reads debug information that is cut or damaged, at many places.
fn read_damaged(without: &[u8], info: &[u8]) {
    for cut in (0..info.len()).step_by(7) {
        let mut damaged = info.to_vec();
        damaged[cut] ^= 0x55;
        for bytes in [damaged, info[..cut].to_vec()] {
            let length = bytes.len() as u64;
            let Ok(lazy) = typeinfo::LazyInfo::new(Box::new(Section(bytes)), length) else {
                continue;
            };
            let mut types = TypeStore::new(Arch::HOST);
            let Ok(dwarf) = Dwarf::new(DwarfSections::lazy(without, &lazy).unwrap()) else {
                continue;
            };
            let source = types.add_dwarf(dwarf).unwrap();
            crate::common::ask_everything(&types, source);
        }
    }
}

/// Read unit by unit, debug information gives the same answers as when read at once; cut or
/// damaged, it causes no panic.
#[test]
fn units_are_read_when_they_are_needed() {
    for options in [["-g", "-gdwarf-5"], ["-g", "-gdwarf-4"]] {
        let Some(elf) = gcc(SOURCE, &options) else {
            return;
        };
        let range = DwarfSections::info_range(&elf).unwrap();
        let info = elf[range.start as usize..range.end as usize].to_vec();
        let lazy =
            typeinfo::LazyInfo::new(Box::new(Section(info.clone())), info.len() as u64).unwrap();
        // The section's own bytes are not needed.
        let mut without = elf.clone();
        without[range.start as usize..range.end as usize].fill(0);
        let mut types = TypeStore::new(Arch::HOST);
        let parts = Dwarf::new(DwarfSections::lazy(&without, &lazy).unwrap()).unwrap();
        let parts = types.add_dwarf(parts).unwrap();
        let whole = types
            .add_dwarf(Dwarf::new(DwarfSections::from_elf(&elf).unwrap()).unwrap())
            .unwrap();
        for name in [
            "g_shared", "g_conns", "g_state", "environ", "t_local", "nothing",
        ] {
            let of = |source| {
                let found = types.variables(source, name).unwrap();
                found
                    .iter()
                    .map(|it| (types.display(it.ty), it.address, it.unit, it.is_defined))
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(parts), of(whole), "{name} {options:?}");
        }
        for (kind, name) in [
            (NameKind::Struct, "conn"),
            (NameKind::Enum, "state"),
            (NameKind::Base, "int"),
            (NameKind::Func, "main"),
        ] {
            let shown = |source| {
                types
                    .find_in(source, kind, name)
                    .unwrap()
                    .map(|ty| types.definition(ty, true).unwrap())
            };
            assert!(
                shown(parts).is_some() && shown(parts) == shown(whole),
                "{name}"
            );
        }
        read_damaged(&without, &info);
    }
}
