//! Layouts held against GCC: it compiles the same definitions, fills each field with ones, and the program prints which bits
//! those were. The script's definitions and the program's DWARF must both say the same.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::common::gcc;
use typeinfo::{
    Arch, Dwarf, DwarfSections, MemberDef, NameKind, RecordDef, SourceId, TypeRef, TypeStore,
};

/// C types, with the number of elements for arrays.
const TYPES: [(&str, Option<u64>); 9] = [
    ("char", None),
    ("unsigned char", None),
    ("short", None),
    ("int", None),
    ("unsigned int", None),
    ("long", None),
    ("double", None),
    ("char", Some(5)),
    ("short", Some(3)),
];

struct Case {
    c: String,
    def: RecordDef,
}

/// Returns the attributes of a struct, as GCC's C.
fn attributes(packed: bool, align: Option<u64>) -> String {
    let mut attributes = String::new();
    if packed {
        attributes.push_str("__attribute__((packed)) ");
    }
    if let Some(align) = align {
        let _ = write!(attributes, "__attribute__((aligned({align}))) ");
    }
    attributes
}

/// Builds a struct of random members: a third of them bit-fields, some without a name, some that
/// begin a new unit.
fn case(
    number: usize,
    random: &mut impl FnMut(u64) -> u64,
    types: &mut TypeStore<'_>,
    earlier: &[TypeRef],
) -> Case {
    let union = random(8) == 0;
    let packed = random(5) == 0;
    let align = (random(6) == 0).then(|| 1 << random(6));
    let (word, mut text, mut members) = (
        if union { "union" } else { "struct" },
        String::new(),
        Vec::new(),
    );
    for index in 0..=random(9) {
        let name = format!("m{index}");
        let (base, count) = TYPES[random(TYPES.len() as u64) as usize];
        let ty = types.base(base).unwrap().unwrap();
        let can_be_bits = count.is_none() && base != "double";
        if can_be_bits && random(2) == 0 {
            let width = random(types.size_of(ty).unwrap() * 8 + 1) as u32;
            let named = width > 0 && random(6) > 0;
            let _ = write!(text, "{base} {}: {width}; ", if named { &name } else { "" });
            let def = if named {
                MemberDef::new(&name, ty)
            } else {
                MemberDef::anonymous(ty)
            };
            members.push(def.bits(width));
        } else if random(6) == 0 && !earlier.is_empty() {
            let inner = random(earlier.len() as u64) as usize;
            let ty = earlier[inner];
            let _ = write!(text, "{} {name}; ", types.display(ty));
            members.push(MemberDef::new(&name, ty));
        } else {
            let ty = types.array(ty, count);
            let _ = write!(text, "{}", types.declare(ty, &name));
            let align = (random(8) == 0).then(|| 1 << random(5));
            if let Some(align) = align {
                let _ = write!(text, " __attribute__((aligned({align})))");
            }
            text.push_str("; ");
            members.push(MemberDef {
                align,
                ..MemberDef::new(&name, ty)
            });
        }
    }
    let name = format!("s{number}");
    let attributes = attributes(packed, align);
    let c = format!("{word} {attributes}{name} {{ {text}}};");
    Case {
        c,
        def: RecordDef {
            union,
            name: Some(name),
            members,
            packed,
            align,
        },
    }
}

trait Arrays {
    fn array(&mut self, ty: TypeRef, count: Option<u64>) -> TypeRef;
}

impl Arrays for TypeStore<'_> {
    fn array(&mut self, ty: TypeRef, count: Option<u64>) -> TypeRef {
        count.map_or(ty, |count| self.array_of(ty, Some(count)).unwrap())
    }
}

fn random() -> impl FnMut(u64) -> u64 {
    let mut seed = 42_u64;
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

/// Returns a program that prints `type size align` and `type member first-bit bits` for all.
fn probe(cases: &[Case]) -> String {
    let mut text = String::from(
        "#include <stdio.h>\n#include <string.h>\nstatic void bits(const char *t, const char *m, unsigned char *p, int n) {\n\
         int first = -1, count = 0; for (int i = 0; i < n * 8; i++) if (p[i / 8] >> i % 8 & 1) { if (first < 0) first = i; count++; }\n\
         printf(\"%s %s %d %d\\n\", t, m, first, count); }\n",
    );
    for case in cases {
        let _ = writeln!(text, "{}", case.c);
    }
    text.push_str("int main(void) {\n");
    for case in cases {
        let name = case.def.name.as_deref().unwrap();
        let word = if case.def.union { "union" } else { "struct" };
        let _ = writeln!(
            text,
            "printf(\"{name} - %zu %zu\\n\", sizeof({word} {name}), _Alignof({word} {name}));"
        );
        for member in &case.def.members {
            let Some(field) = &member.name else { continue };
            let set = match member.bits {
                Some(_) => format!("v.{field} = -1"),
                None => format!("memset(&v.{field}, 255, sizeof(v.{field}))"),
            };
            let _ = writeln!(
                text,
                "{{ {word} {name} v; memset(&v, 0, sizeof v); {set}; bits(\"{name}\", \"{field}\", (void *)&v, sizeof v); }}"
            );
        }
    }
    text.push_str("return 0; }\n");
    text
}

fn run(elf: &[u8]) -> HashMap<(String, String), (u64, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("probe");
    testkit::write_program(&path, elf);
    let output = testkit::command(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        (
            (words[0].to_owned(), words[1].to_owned()),
            (words[2].parse().unwrap_or(0), words[3].parse().unwrap()),
        )
    };
    text.lines().map(line).collect()
}

fn compare(
    types: &TypeStore<'_>,
    ty: TypeRef,
    case: &Case,
    truth: &HashMap<(String, String), (u64, u64)>,
    who: &str,
) {
    let name = case.def.name.clone().unwrap();
    let (size, align) = truth[&(name.clone(), "-".to_owned())];
    assert_eq!(types.size_of(ty), Ok(size), "{who}: {}", case.c);
    if who == "script" {
        assert_eq!(types.align_of(ty), Ok(align), "{who}: {}", case.c);
    }
    for member in &case.def.members {
        let Some(field) = &member.name else { continue };
        let (first, bits) = truth[&(name.clone(), field.clone())];
        let found = types.member(ty, field).unwrap();
        let size = found
            .bit_size
            .map_or_else(|| types.size_of(found.ty).unwrap() * 8, u64::from);
        // A struct without bits in it leaves no mark.
        if size > 0 && bits == size {
            assert_eq!(
                (found.bit_offset, size),
                (first, bits),
                "{who}: {field} of {}",
                case.c
            );
        } else {
            assert_eq!(size, bits, "{who}: {field} of {}", case.c);
        }
        assert_eq!(found.bit_size, member.bits, "{who}: {field} of {}", case.c);
    }
}

#[test]
fn random_structs() {
    let mut types = TypeStore::new(Arch::X86_64);
    let (mut random, mut cases, mut made) = (random(), Vec::new(), Vec::new());
    for number in 0..400 {
        let case = case(number, &mut random, &mut types, &made);
        made.push(types.define_record(case.def.clone()).unwrap());
        cases.push(case);
    }
    let source = probe(&cases);
    for options in [
        &["-g", "-gdwarf-5"][..],
        &["-g", "-gdwarf-4", "-fdebug-types-section"],
        &["-gdwarf-2", "-gstrict-dwarf"],
    ] {
        let Some(elf) = gcc(&source, options) else {
            return;
        };
        let truth = run(&elf);
        let mut read = TypeStore::new(Arch::X86_64);
        read.add_dwarf(Dwarf::new(DwarfSections::from_elf(&elf).unwrap()).unwrap())
            .unwrap();
        for (case, ty) in cases.iter().zip(&made) {
            compare(&types, *ty, case, &truth, "script");
            // GCC leaves out types without a variable in the program.
            if case.def.members.iter().all(|member| member.name.is_none()) {
                continue;
            }
            let kind = if case.def.union {
                NameKind::Union
            } else {
                NameKind::Struct
            };
            let found = read
                .require(kind, case.def.name.as_deref().unwrap())
                .unwrap();
            compare(&read, found, case, &truth, &format!("{options:?}"));
        }
    }
}

const PROGRAM: &str = "
enum nvmf_tgt_state { INIT_NONE, INIT_CREATE = 1, RUNNING = 200, ERROR = 255 };
enum negative { BELOW = -3, ABOVE = 4 };
enum wide { WIDE = 0xffffffffffffffff };
struct later; typedef struct in { char name[16]; union { int a; struct { short lo, hi; }; }; struct later *next; int rows[2][3]; char tail[]; } in_t;
struct later { const volatile int *p; _Bool yes; double d; int (*call)(const char *, ...); };
enum nvmf_tgt_state s; enum negative n; enum wide w; in_t g; struct later l;
__attribute__((noinline)) int open_it(struct in *first, const char *path, unsigned long flags) { return first->a + *path + flags; }
static inline __attribute__((always_inline)) long inlined(long x, char y) { return x * y; }
int printed(const char *format, ...) { return *format; }
int main(int argc, char **argv) { return open_it(&g, argv[0], inlined(argc, 3)); }";

/// Checks the functions of [`PROGRAM`].
fn check_functions(types: &TypeStore<'_>, source: SourceId) {
    let open = types.function(source, "open_it").unwrap().unwrap();
    assert_eq!(
        types.display(open.ty),
        "int open_it(struct in *first, const char *path, long unsigned int flags)"
    );
    assert_eq!(open.params[1].name, Some("path"));
    let inlined = types.function(source, "inlined").unwrap().unwrap();
    assert_eq!(
        types.display(inlined.ty),
        "long int inlined(long int x, char y)"
    );
    assert!(types.function(source, "printed").unwrap().unwrap().variadic);
}

/// Checks the enums of [`PROGRAM`].
fn check_enums(types: &TypeStore<'_>) {
    let state = types.require(NameKind::Enum, "nvmf_tgt_state").unwrap();
    assert_eq!(types.enum_name(state, 200), Ok(Some("RUNNING")));
    assert_eq!(types.enum_value(state, "ERROR"), Ok(Some(255)));
    assert_eq!(
        types
            .find_enumerator("BELOW")
            .unwrap()
            .map(|(_, value)| value),
        Some(-3)
    );
    assert_eq!(
        types
            .find_enumerator("WIDE")
            .unwrap()
            .map(|(_, value)| value),
        Some(-1)
    );
}

/// Checks the structs of [`PROGRAM`].
fn check_structs(types: &TypeStore<'_>) {
    let inner = types.require(NameKind::Typedef, "in_t").unwrap();
    assert_eq!(types.path(inner, "hi").unwrap().byte_offset(), 18);
    assert_eq!(
        types.path(inner, "rows[1][2]").unwrap().byte_offset(),
        32 + 20
    );
    assert_eq!(
        types.size_of(types.member(inner, "tail").unwrap().ty),
        Ok(0)
    );
    let definition = types
        .definition(types.require(NameKind::Struct, "later").unwrap(), true)
        .unwrap();
    assert!(
        definition.contains("int (*call)(const char *, ...); /* 24 8 */"),
        "{definition}"
    );
    assert!(
        definition.contains("const volatile int *p;")
            || definition.contains("volatile const int *p;"),
        "{definition}"
    );
    let text = types.definition(inner, false).unwrap();
    assert!(
        text.contains("int rows[2][3];") && text.contains("char tail[];"),
        "{text}"
    );
    assert!(types.find(NameKind::Struct, "nosuch").unwrap().is_none());
    assert_eq!(types.nearest(NameKind::Struct, "latr"), ["later"]);
}

#[test]
fn types_of_a_program_match_gcc() {
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O2"],
        &["-gdwarf-4", "-O2"],
        &["-gdwarf-5", "-fdebug-types-section"],
    ] {
        let Some(elf) = gcc(PROGRAM, options) else {
            return;
        };
        let mut types = TypeStore::new(Arch::X86_64);
        let source = types
            .add_dwarf(Dwarf::new(DwarfSections::from_elf(&elf).unwrap()).unwrap())
            .unwrap();
        check_functions(&types, source);
        check_enums(&types);
        check_structs(&types);
    }
}
