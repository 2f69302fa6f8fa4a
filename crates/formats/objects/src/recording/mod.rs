//! The text of a recording: one line for each hit, `probe: name=0x<hex>, name='<string>'`, as
//! bpftrace and `dptrace record` write it. Lines of any other form are not ours and are skipped.

mod text;

use crate::spec::TSC;

pub use text::write_line;

/// Value of a probe's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value<'a> {
    /// A number or a pointer.
    Int(u64),
    /// A string.
    Str(&'a str),
}

/// One hit of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the probe.
    pub probe: &'a str,
    /// Time in ticks. A hit without a time (0: see [`ProbeSpec::ticks`]) gets that of the hit on an
    /// earlier line, since lines are written in the order of the hits: too early, but in the right
    /// order.
    ///
    /// [`ProbeSpec::ticks`]: crate::ProbeSpec::ticks
    pub tsc: u64,
    /// All arguments, the tsc included.
    pub args: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Event<'a> {
    /// Returns the value of the argument with this name.
    pub fn arg(&self, name: &str) -> Option<Value<'a>> {
        self.args
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| *value)
    }
}

/// A line of a wanted probe that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub why: &'static str,
}

/// Contents of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording<'a> {
    /// Hits of the wanted probes, by tsc; those with the same tsc in the order of their lines.
    pub events: Vec<Event<'a>>,
    /// Lines of wanted probes that could not be read.
    pub broken: Vec<BrokenLine>,
    /// Total number of lines.
    pub lines: usize,
}

impl<'a> Recording<'a> {
    /// Reads the lines of the probes for which `wanted` returns true.
    pub fn parse(text: &'a str, wanted: impl Fn(&str) -> bool) -> Self {
        let mut recording = Self {
            lines: text.lines().count(),
            ..Self::default()
        };
        for event in events(text, wanted, 0) {
            match event {
                Ok((_, event)) => recording.events.push(event),
                Err(broken) => recording.broken.push(broken),
            }
        }
        recording.events.sort_by_key(|event| event.tsc);
        recording
    }
}

/// Iterates over the events of the text in line order, each with its line. `before` is the time of
/// the preceding event.
pub(crate) fn events(
    text: &str,
    wanted: impl Fn(&str) -> bool,
    mut before: u64,
) -> impl Iterator<Item = Result<(&str, Event<'_>), BrokenLine>> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let (probe, rest) = line.split_once(": ")?;
        if !wanted(probe) {
            return None;
        }
        Some(match parse_args(rest) {
            Ok((tsc, args)) => {
                before = if tsc == 0 { before } else { tsc };
                Ok((
                    line,
                    Event {
                        probe,
                        tsc: before,
                        args,
                    },
                ))
            }
            Err(why) => Err(BrokenLine {
                line: index + 1,
                why,
            }),
        })
    })
}

type Args<'a> = Vec<(&'a str, Value<'a>)>;

fn parse_args(mut rest: &str) -> Result<(u64, Args<'_>), &'static str> {
    let mut args = Vec::new();
    loop {
        let (name, after) = rest.split_once('=').ok_or("an argument without a value")?;
        if !is_name(name) {
            return Err("an argument without a name");
        }
        let (value, after) = parse_value(after)?;
        args.push((name, value));
        if after.is_empty() {
            break;
        }
        rest = after
            .strip_prefix(", ")
            .ok_or("something other than a comma after a value")?;
    }
    let tsc = args.iter().find(|(name, _)| *name == TSC);
    match tsc {
        Some((_, Value::Int(tsc))) => Ok((*tsc, args)),
        _ => Err("no tsc"),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Parses the value at the start of `text`, and returns it with the rest.
fn parse_value(text: &str) -> Result<(Value<'_>, &str), &'static str> {
    if let Some(string) = text.strip_prefix('\'') {
        let end = end_of_string(string).ok_or("a string without its closing quote")?;
        return Ok((Value::Str(&string[..end]), &string[end + 1..]));
    }
    let digits = text
        .strip_prefix("0x")
        .ok_or("a value that is neither 0x... nor '...'")?;
    let end = digits
        .bytes()
        .position(|b| !b.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    let number = u64::from_str_radix(&digits[..end], 16)
        .map_err(|_| "a number that does not fit in 64 bits")?;
    Ok((Value::Int(number), &digits[end..]))
}

/// Returns the end of a string. It is not escaped, and an NQN may hold commas, equal signs, blanks
/// and quotes. So it ends at the first quote that is followed by the end of the line or by the next
/// argument.
fn end_of_string(string: &str) -> Option<usize> {
    string.match_indices('\'').map(|(at, _)| at).find(|at| {
        let after = &string[at + 1..];
        after.is_empty() || after.strip_prefix(", ").is_some_and(begins_with_name)
    })
}

/// Returns whether the text begins with an argument's name and an equal sign. Reads no further,
/// since a line may have many quotes.
fn begins_with_name(text: &str) -> bool {
    let end = text
        .bytes()
        .position(|b| !is_name_byte(b))
        .unwrap_or(text.len());
    end > 0 && text[end..].starts_with('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Event<'_> {
        let recording = Recording::parse(line, |_| true);
        assert_eq!(recording.broken, [], "{line}");
        recording.events.into_iter().next().unwrap()
    }

    fn broken(line: &str) -> &'static str {
        Recording::parse(line, |_| true).broken[0].why
    }

    #[test]
    fn values_may_hold_what_separates_them() {
        let event =
            one("add: tsc=0x10, qid=0x1, hostnqn='nqn.2014-08.com.example:rack=7,slot=2', end=0x2");
        assert_eq!(
            event.arg("hostnqn"),
            Some(Value::Str("nqn.2014-08.com.example:rack=7,slot=2"))
        );
        assert_eq!(event.arg("end"), Some(Value::Int(2)));
        assert_eq!(
            one("a: tsc=0x1, s='it's, a=b'").arg("s"),
            Some(Value::Str("it's, a=b"))
        );
        assert_eq!(one("a: tsc=0x1, s=''").arg("s"), Some(Value::Str("")));
    }

    /// Regression: reading up to the next equal sign for each quote took minutes for a line of a
    /// megabyte.
    #[test]
    fn a_line_of_quotes_is_read_once() {
        let line = format!("a: tsc=0x1, s='{}", "', ".repeat(400_000));
        assert_eq!(broken(&line), "a string without its closing quote");
        assert_eq!(
            one(&format!("{line}'")).arg("s"),
            Some(Value::Str(&line["a: tsc=0x1, s='".len()..]))
        );
    }

    #[test]
    fn lines_of_other_shapes_are_skipped() {
        let text =
            "Attaching 5 probes...\n\nLost 3 events\nadd: tsc=0x2\nother: whatever\nadd: tsc=0x1\n";
        let recording = Recording::parse(text, |probe| probe == "add");
        assert_eq!(
            recording.events.iter().map(|e| e.tsc).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!((recording.broken.len(), recording.lines), (0, 6));
    }

    #[test]
    fn broken_lines_are_reported() {
        assert_eq!(broken("a: tsc"), "an argument without a value");
        assert_eq!(
            broken("a: tsc=12"),
            "a value that is neither 0x... nor '...'"
        );
        assert_eq!(
            broken("a: tsc=0x1, s='cut"),
            "a string without its closing quote"
        );
        assert_eq!(
            broken("a: tsc=0x11111111111111111"),
            "a number that does not fit in 64 bits"
        );
        assert_eq!(broken("a: qpair=0x1"), "no tsc");
        assert_eq!(
            broken("a: tsc=0x1 qid=0x2"),
            "something other than a comma after a value"
        );
    }
}
