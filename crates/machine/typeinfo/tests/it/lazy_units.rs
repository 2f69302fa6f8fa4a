//! Debug information that is read unit by unit: only units that define a queried type are read.

use std::sync::Mutex;

use crate::common::gcc_of_files;
use typeinfo::{
    Arch, Dwarf, DwarfSections, LazyInfo, NameKind, ReadSection, TypeKind, TypeRef, TypeStore,
};

/// A section that records the reads from it.
struct Section<'s> {
    bytes: &'s [u8],
    read: &'s Mutex<Vec<(u64, usize)>>,
}

impl ReadSection for Section<'_> {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        self.read.lock().unwrap().push((offset, into.len()));
        let from = self
            .bytes
            .get(offset as usize..)
            .and_then(|rest| rest.get(..into.len()));
        from.map(|from| into.copy_from_slice(from)).is_some()
    }
}

/// Least length of a read that is longer than the header of a unit, in bytes.
const WHOLE_UNIT: usize = 25;

/// Returns the source files of a program: all use two structs, of which one file has the
/// definition.
fn files() -> Vec<String> {
    let user = |number: u32| {
        format!(
            "struct wanted; struct inner; struct own{number} {{ struct wanted *w; struct inner *i; int n; }} own{number};\n"
        )
    };
    let definition = "struct inner { int x; }; struct wanted { struct inner *inner; long y; } wanted; struct nowhere *n;\n";
    let mut files: Vec<String> = (0..5).map(user).collect();
    files[3].push_str(definition);
    // With few strings, the offset of one is a number that occurs in many places.
    let names: Vec<String> = (0..4000)
        .map(|number| format!("{}_{number}", "long_name".repeat(25)))
        .collect();
    files[0].insert_str(
        0,
        &format!("enum names {{ {} }} names;\n", names.join(", ")),
    );
    files[4].push_str("int main(void) { return 0; }\n");
    files
}

/// Returns the type that a member of a struct points to.
fn pointed_to(types: &TypeStore<'_>, of: TypeRef, member: &str) -> TypeRef {
    match types.kind(types.member(of, member).unwrap().ty).unwrap() {
        TypeKind::Pointer { target, .. } => target,
        _ => panic!("a pointer"),
    }
}

#[test]
fn units_that_only_declare_a_struct_are_not_read() {
    let files = files();
    for options in [["-g", "-gdwarf-5"], ["-g", "-gdwarf-4"]] {
        let Some(elf) = gcc_of_files(&files, &options) else {
            return;
        };
        let range = DwarfSections::info_range(&elf).unwrap();
        let info = &elf[range.start as usize..range.end as usize];
        let read = Mutex::default();
        let lazy = LazyInfo::new(
            Box::new(Section {
                bytes: info,
                read: &read,
            }),
            info.len() as u64,
        )
        .unwrap();
        let mut types = TypeStore::new(Arch::HOST);
        let source = types
            .add_dwarf(Dwarf::new(DwarfSections::lazy(&elf, &lazy).unwrap()).unwrap())
            .unwrap();
        assert!(info.len() < 200_000, "one block");
        types.prepare(&["wanted", "inner", "own0", "nowhere", "missing", "other"]);
        // A search reads blocks that are longer than units.
        let of_units = || {
            read.lock()
                .unwrap()
                .iter()
                .filter(|it| it.1 >= WHOLE_UNIT && it.1 < info.len())
                .count()
        };
        assert_eq!(of_units(), 0, "all names are searched for in one pass");

        let find = |name| types.find_in(source, NameKind::Struct, name).unwrap();
        let wanted = find("wanted").unwrap();
        assert_eq!(types.size_of(wanted).unwrap(), 16);
        let inner = pointed_to(&types, wanted, "inner");
        assert_eq!(types.size_of(inner).unwrap(), 4);
        assert_eq!((find("nowhere"), find("missing")), (None, None));
        assert_eq!(of_units(), 1, "{options:?}: {:?}", read.lock().unwrap());
        // A member in the unit that declares the type leads to the definition in the other unit.
        let target = pointed_to(&types, find("own0").unwrap(), "w");
        assert_eq!(types.strip(target).unwrap(), wanted);
        assert_eq!(of_units(), 2);
        let passes = read
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.0 == 0 && it.1 == info.len())
            .count();
        assert_eq!(passes, 1, "{:?}", read.lock().unwrap());
    }
}
