//! Compares the layouts of SPDK's structs with the DWARF of real builds (`data/spdk-layouts.tsv`), and
//! the enumerators with the headers (`data/spdk-enums.tsv`).

use std::collections::BTreeMap;

use objects::layouts::{SpdkVersion, layout_text, versions};

/// Size and alignment, in bytes.
type Size = (usize, usize);
/// Offset and size of each member; those of contained structs are named `outer.inner`.
type Members = BTreeMap<String, (usize, usize)>;
/// Value of each enumerator, by the enumeration's name and its own.
type Enumerators<'a> = BTreeMap<(&'a str, &'a str), usize>;

/// C's rules for 64-bit Linux, as far as layouts need them.
struct Layouts<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    structs: BTreeMap<String, (Size, Members)>,
    enumerators: Enumerators<'a>,
}

impl<'a> Layouts<'a> {
    fn parse(text: &'a str) -> Self {
        let marks = ['{', '}', ';', '*', '[', ']', '=', ','];
        let mut tokens = Vec::new();
        for word in text.split_whitespace() {
            let mut rest = word;
            while let Some(at) = rest.find(marks) {
                tokens.extend((at > 0).then(|| &rest[..at]));
                tokens.push(&rest[at..=at]);
                rest = &rest[at + 1..];
            }
            tokens.extend((!rest.is_empty()).then_some(rest));
        }
        let mut layouts = Layouts {
            tokens: tokens.into_iter().peekable(),
            structs: BTreeMap::new(),
            enumerators: Enumerators::new(),
        };
        while let Some(tag) = layouts
            .tokens
            .next_if(|tag| ["struct", "enum"].contains(tag))
        {
            let name = layouts.next();
            layouts.expect("{");
            if tag == "enum" {
                layouts.enumeration(name);
                continue;
            }
            let name = name.to_owned();
            let body = layouts.body();
            layouts.expect(";");
            assert!(
                layouts.structs.insert(name.clone(), body).is_none(),
                "{name} twice"
            );
        }
        assert_eq!(layouts.tokens.next(), None);
        layouts
    }

    /// Parses enumerators up to the closing brace.
    fn enumeration(&mut self, of: &'a str) {
        while self.tokens.next_if_eq(&"}").is_none() {
            let name = self.next();
            self.expect("=");
            let value = self.next().parse().unwrap();
            self.expect(",");
            let known = self.enumerators.insert((of, name), value);
            assert_eq!(known, None, "{name} twice");
        }
        self.expect(";");
    }

    fn next(&mut self) -> &'a str {
        self.tokens.next().expect("a token")
    }

    fn expect(&mut self, token: &str) {
        assert_eq!(self.next(), token);
    }

    /// Parses members up to the closing brace.
    fn body(&mut self) -> (Size, Members) {
        let (mut end, mut align) = (0, 1);
        let mut members = Members::new();
        while self.tokens.next_if_eq(&"}").is_none() {
            let ((mut size, mut align_of), inner) = self.base();
            while self.tokens.next_if_eq(&"*").is_some() {
                (size, align_of) = (8, 8);
            }
            let name = self.next();
            if self.tokens.next_if_eq(&"[").is_some() {
                size *= self.next().parse::<usize>().unwrap();
                self.expect("]");
            }
            self.expect(";");
            assert!(align_of > 0, "{name} has no known type");
            let offset = usize::next_multiple_of(end, align_of);
            for (member, (at, bytes)) in inner {
                members.insert(format!("{name}.{member}"), (offset + at, bytes));
            }
            assert!(
                members.insert(name.to_owned(), (offset, size)).is_none(),
                "{name} twice"
            );
            (end, align) = (offset + size, align.max(align_of));
        }
        ((end.next_multiple_of(align), align), members)
    }

    /// Parses a type without its stars; a struct that is only pointed to has no size.
    fn base(&mut self) -> (Size, Members) {
        let plain = |size| ((size, size), Members::new());
        match self.next() {
            "struct" if self.tokens.next_if_eq(&"{").is_some() => self.body(),
            "struct" => {
                let name = self.next();
                self.structs
                    .get(name)
                    .map_or(plain(0), |(size, _)| (*size, Members::new()))
            }
            "void" => plain(0),
            "char" | "uint8_t" => plain(1),
            "uint16_t" => plain(2),
            "int" | "uint32_t" => plain(4),
            "uint64_t" => plain(8),
            other => panic!("no type: {other}"),
        }
    }
}

/// Returns the numbers of a line in this version, from its cells: offset and size of a member, or the
/// value of an enumerator.
fn real<const N: usize>(cells: &[&str], version: SpdkVersion) -> Option<[usize; N]> {
    cells.iter().find_map(|cell| {
        let (range, numbers) = cell.split_once(' ').unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (SpdkVersion, SpdkVersion) =
            (first.parse().unwrap(), last.parse().unwrap());
        let numbers: Vec<_> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
        let numbers = numbers.try_into().unwrap();
        (first <= version && version <= last).then_some(numbers)
    })
}

#[test]
fn every_member_is_where_real_builds_have_it() {
    let facts = include_str!("data/spdk-layouts.tsv");
    let mut compared = 0;
    for version in versions() {
        let text = layout_text(version);
        let structs = Layouts::parse(&text).structs;
        for line in facts.lines().skip(1) {
            let fields: Vec<_> = line.split('\t').collect();
            let [name, member, cells @ ..] = fields.as_slice() else {
                panic!("{line}")
            };
            let ours = structs
                .get(*name)
                .and_then(|(_, members)| members.get(*member))
                .copied();
            let real = real(cells, version).map(|[offset, size]| (offset, size));
            assert_eq!(ours, real, "{name}.{member} in {version}");
            compared += 1;
        }
        // All members except padding have a reference value.
        for (name, (_, members)) in &structs {
            for member in members
                .keys()
                .filter(|member| !member.contains('.') && !member.starts_with("pad"))
            {
                let key = format!("{name}\t{member}");
                assert!(facts.contains(&key), "{key} in {version}");
            }
        }
    }
    assert!(compared > 1500, "{compared}");
}

#[test]
fn enumerators_have_the_values_of_the_headers() {
    let facts = include_str!("data/spdk-enums.tsv");
    for version in versions() {
        let text = layout_text(version);
        let ours = Layouts::parse(&text).enumerators;
        let real: Enumerators<'_> = facts
            .lines()
            .skip(1)
            .filter_map(|line| {
                let fields: Vec<_> = line.split('\t').collect();
                let [of, name, cells @ ..] = fields.as_slice() else {
                    panic!("{line}")
                };
                real(cells, version).map(|[value]| ((*of, *name), value))
            })
            .collect();
        assert_eq!(ours, real, "{version}");
        assert!(!ours.is_empty(), "{version}");
    }
}
