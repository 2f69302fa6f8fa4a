//! Output of bpftool for this kernel's BTF.

use std::collections::HashMap;

use super::PATH;

/// Output of bpftool for one type: the words of its line, and the lines of its parts.
pub(super) struct Dumped {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) fields: HashMap<String, i64>,
    pub(super) parts: Vec<(String, HashMap<String, i64>)>,
}

fn quoted(line: &str) -> (String, &str) {
    let (_, rest) = line.split_once('\'').unwrap();
    let (name, rest) = rest.split_once('\'').unwrap();
    (
        if name == "(anon)" {
            String::new()
        } else {
            name.to_owned()
        },
        rest,
    )
}

fn fields(text: &str) -> HashMap<String, i64> {
    let pairs = text
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let number = |value: &str| {
        let value = value.trim_end_matches(['U', 'L']);
        value
            .parse::<i64>()
            .or_else(|_| value.parse::<u64>().map(u64::cast_signed))
            .ok()
    };
    pairs
        .filter_map(|(key, value)| Some((key.to_owned(), number(value)?)))
        .collect()
}

pub(super) fn dump() -> Option<HashMap<u32, Dumped>> {
    let output = testkit::command("bpftool")
        .args(["btf", "dump", "file", PATH, "format", "raw"])
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        testkit::kernel::skip_if_permitted("bpftool", "no bpftool");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut types, mut last) = (HashMap::new(), 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix('[') {
            let (id, rest) = rest.split_once("] ").unwrap();
            let (kind, _) = rest.split_once(' ').unwrap();
            let (name, tail) = quoted(rest);
            last = id.parse().unwrap();
            types.insert(
                last,
                Dumped {
                    kind: kind.to_owned(),
                    name,
                    fields: fields(tail),
                    parts: Vec::new(),
                },
            );
        } else if line.starts_with("\t'") {
            let (name, tail) = quoted(line);
            types
                .get_mut(&last)
                .unwrap()
                .parts
                .push((name, fields(tail)));
        }
    }
    Some(types)
}
