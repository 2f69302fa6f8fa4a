//! Queries to the machine.

use bt_abi::Clock;

/// A function behind an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// How many bytes behind its first the address is.
    pub offset: u64,
    /// The file that it is in, if it is not the kernel itself.
    pub module: Option<String>,
    /// Where in the source, if that is known and wanted.
    pub place: Option<SourcePlace>,
    /// Whether it was inlined into the next one of the list.
    pub inlined: bool,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// What a frame of a stack is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// It is in these functions, the innermost first; at least one.
    Functions(Vec<Symbol>),
    /// It is in code whose function is not known: the text for it, `module+0x12` or the address in hex.
    Unnamed(String),
    /// It is not in code: it is no frame.
    NotCode,
}

/// The machine's answers. No query fails: what is not known is `None`.
pub trait Lookups {
    /// The functions that a kernel address is in, the innermost first; empty if it is not known.
    fn kernel(&self, address: u64) -> Vec<Symbol>;
    /// What an address of a process is in. That of a `caller` in a stack is the one that it will go on at.
    fn user(&self, pid: u32, address: u64, caller: bool) -> Frame;
    /// The name of the user of this number.
    fn user_name(&self, uid: u32) -> Option<String>;
    /// The cgroup's path in each hierarchy whose name fits the pattern (all, if it is empty): name and path.
    fn cgroup_paths(&self, id: u64, hierarchy: &str) -> Vec<(String, String)>;
    /// The text for an error number, as `strerror(3)` has it.
    fn error_text(&self, number: i32) -> String;
    /// What to add to a clock's nanoseconds to get nanoseconds since 1970.
    fn since_epoch(&self, clock: Clock) -> i64;
    /// A moment since 1970 in nanoseconds in the local time zone, through `strftime(3)`; `None` if the format is not one.
    fn local_time(&self, nanos: i64, format: &str) -> Option<String>;
}

/// As [`Lookups::local_time`] with what bpftrace adds to `strftime(3)`: `%f` microseconds, `%l` milliseconds, `%k`
/// nanoseconds.
pub fn timestamp(lookups: &dyn Lookups, nanos: i64, format: &str) -> Option<String> {
    let part = nanos.rem_euclid(1_000_000_000);
    let mut plain = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let letter = rest[at + 1..].chars().next();
        let shown = match letter {
            Some('f') => format!("{:06}", part / 1000),
            Some('l') => format!("{:03}", part / 1_000_000),
            Some('k') => format!("{part:09}"),
            Some(other) => format!("%{other}"),
            None => "%%".to_owned(),
        };
        plain.push_str(&shown);
        rest = &rest[at + 1 + letter.map_or(0, char::len_utf8)..];
    }
    plain.push_str(rest);
    lookups.local_time(nanos, &plain)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine that knows one function, and no clock.
    pub(crate) struct Nowhere;

    fn known(name: &str, module: Option<&str>, address: u64) -> Vec<Symbol> {
        let offset = address.wrapping_sub(0x1000);
        let module = module.map(str::to_owned);
        let symbol = Symbol { name: name.to_owned(), offset, module, ..Symbol::default() };
        if offset < 0x100 { vec![symbol] } else { Vec::new() }
    }

    impl Lookups for Nowhere {
        fn kernel(&self, address: u64) -> Vec<Symbol> {
            known("known", None, address)
        }
        /// Nothing below 0x100 is code.
        fn user(&self, pid: u32, address: u64, caller: bool) -> Frame {
            let found = known(&format!("own{pid}"), Some("/bin/a"), address.saturating_sub(u64::from(caller)));
            match found.into_iter().next() {
                Some(symbol) => Frame::Functions(vec![symbol]),
                None if address < 0x100 => Frame::NotCode,
                None => Frame::Unnamed(format!("a+{address:#x}")),
            }
        }
        fn user_name(&self, uid: u32) -> Option<String> {
            (uid == 0).then(|| "root".into())
        }
        fn cgroup_paths(&self, _: u64, hierarchy: &str) -> Vec<(String, String)> {
            vec![("unified".into(), format!("/{hierarchy}"))]
        }
        fn error_text(&self, number: i32) -> String {
            format!("error {number}")
        }
        fn since_epoch(&self, _: Clock) -> i64 {
            0
        }
        /// `%H:%M:%S` of UTC; all else as it is.
        fn local_time(&self, nanos: i64, format: &str) -> Option<String> {
            let seconds = nanos / 1_000_000_000;
            let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
            Some(format.replace("%H:%M:%S", &time).replace("%Y-%m-%d", "1970-01-01"))
        }
    }
}
