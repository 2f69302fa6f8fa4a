//! Compares the layouts of SPDK's structs with the DWARF of real builds (`data/spdk-layouts.tsv`).

use std::collections::BTreeMap;

use objects::layouts::{SpdkVersion, layout_text, versions};

/// Size and alignment, in bytes.
type Size = (usize, usize);
/// Offset and size of each member; those of contained structs are named `outer.inner`.
type Members = BTreeMap<String, (usize, usize)>;

/// C's rules for 64-bit Linux, as far as layouts need them.
struct Layouts<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    structs: BTreeMap<String, (Size, Members)>,
}

impl<'a> Layouts<'a> {
    fn parse(text: &'a str) -> BTreeMap<String, (Size, Members)> {
        let marks = ['{', '}', ';', '*', '[', ']'];
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
        };
        while layouts.tokens.next_if_eq(&"struct").is_some() {
            let name = layouts.next().to_owned();
            layouts.expect("{");
            let body = layouts.body();
            layouts.expect(";");
            assert!(
                layouts.structs.insert(name.clone(), body).is_none(),
                "{name} twice"
            );
        }
        assert_eq!(layouts.tokens.next(), None);
        layouts.structs
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

/// Returns offset and size of the member in this version, from the cells of its line.
fn real(cells: &[&str], version: SpdkVersion) -> Option<(usize, usize)> {
    cells.iter().find_map(|cell| {
        let mut parts = cell.split([' ', '-']);
        let mut part = || parts.next().unwrap();
        let (first, last): (SpdkVersion, SpdkVersion) =
            (part().parse().unwrap(), part().parse().unwrap());
        let place = (part().parse().unwrap(), part().parse().unwrap());
        (first <= version && version <= last).then_some(place)
    })
}

#[test]
fn every_member_is_where_real_builds_have_it() {
    let facts = include_str!("data/spdk-layouts.tsv");
    let mut compared = 0;
    for version in versions() {
        let text = layout_text(version);
        let structs = Layouts::parse(&text);
        for line in facts.lines().skip(1) {
            let fields: Vec<_> = line.split('\t').collect();
            let [name, member, cells @ ..] = fields.as_slice() else {
                panic!("{line}")
            };
            let ours = structs
                .get(*name)
                .and_then(|(_, members)| members.get(*member))
                .copied();
            assert_eq!(ours, real(cells, version), "{name}.{member} in {version}");
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
