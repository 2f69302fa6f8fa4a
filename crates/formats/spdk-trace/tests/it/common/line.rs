//! Records and problems as lines that a person can compare.

use std::fmt::Write;

use spdk_trace::{ArgValue, Args, Object, Poller, Record};

/// Formats problems, a line each: lcore, kind, count and offset.
pub(crate) fn problems(problems: &spdk_trace::Problems) -> Vec<String> {
    let lcore = |lcore: Option<spdk_trace::Lcore>| {
        lcore.map_or_else(String::new, |lcore| format!("lcore {lcore}: "))
    };
    problems
        .iter()
        .map(|f| {
            format!(
                "{}{:?} x{} at {}",
                lcore(f.lcore),
                f.problem,
                f.count,
                f.first
            )
        })
        .collect()
}

/// Formats a record as `lcore tsc TPOINT`, followed by the parts that it has: poller, `<owner>`,
/// `size N`, object, `(related)`, `argument=value`.
///
/// An object is `r0(0x1000)+age`, `n/a(0x1000)` if its creation was not seen, or its bare id if it has no type.
pub(crate) fn line(record: &Record<'_>) -> String {
    let mut line = format!("{} {} {}", record.lcore, record.tsc.0, record.tpoint.name);
    match record.poller {
        Some(Poller::Id(prefix, number)) => put(&mut line, format_args!("{prefix}{number:02}")),
        Some(Poller::Text(text)) => put(&mut line, text),
        None => {}
    }
    if let Some(owner) = record.owner {
        put(&mut line, format_args!("<{owner}>"));
    }
    if record.size != 0 {
        put(&mut line, format_args!("size {}", record.size));
    }
    match record.object {
        Object::None => {}
        Object::Untyped(id) => put(&mut line, format_args!("{id:#x}")),
        Object::Unseen(id) => put(&mut line, format_args!("n/a({id:#x})")),
        Object::ValueOnly(id) => put(&mut line, format_args!("value({id:#x})")),
        Object::Nameless { id, age } => {
            put(
                &mut line,
                format_args!("nameless({id:#x})+{}", age.map_or(0, |age| age.0)),
            );
        }
        Object::Known {
            name,
            id,
            age: Some(age),
        } => put(&mut line, format_args!("{name}({id:#x})+{}", age.0)),
        Object::Known {
            name,
            id,
            age: None,
        } => put(&mut line, format_args!("{name}({id:#x})")),
    }
    if let Some(related) = record.related {
        put(&mut line, format_args!("({})", related.name));
    }
    put_args(&mut line, record.args);
    line
}

fn put_args(line: &mut String, args: Args<'_>) {
    for (spec, value) in args.iter() {
        let name = &spec.name;
        match value {
            ArgValue::Int(number) => put(line, format_args!("{name}={number}")),
            ArgValue::Pointer(pointer) => put(line, format_args!("{name}={pointer:#x}")),
            ArgValue::Str(text) => put(
                line,
                format_args!("{name}='{}'", String::from_utf8_lossy(text)),
            ),
        }
    }
}

fn put(line: &mut String, part: impl std::fmt::Display) {
    // Writing to a string can't fail.
    let _ = write!(line, " {part}");
}
