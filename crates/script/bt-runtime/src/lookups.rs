//! Queries to the machine.

use bt_abi::Clock;

/// Function at an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbol {
    /// Name of the function.
    pub name: String,
    /// Offset of the address from the function's start, in bytes.
    pub offset: u64,
    /// File that contains the function; `None` for the kernel itself.
    pub module: Option<String>,
    /// Line of the source, if it is known and wanted.
    pub place: Option<SourcePlace>,
    /// True if the function was inlined into the next one of the list.
    pub inlined: bool,
}

/// Line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// Path of the file.
    pub file: String,
    /// Line number.
    pub line: u32,
}

/// Frame of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Address in these functions, innermost first; at least one.
    Functions(Vec<Symbol>),
    /// Address in code of an unknown function, with its text: `module+0x12` or the address in hex.
    Unnamed(String),
    /// Address outside any code, hence no frame.
    NotCode,
}

/// Queries that the machine answers. No query fails: an unknown answer is `None`.
pub trait Lookups {
    /// Returns the functions that contain a kernel address, innermost first; empty if unknown.
    fn kernel(&self, address: u64) -> Vec<Symbol>;
    /// Returns the frame at an address of a process. For a `caller` in a stack, `address` is a
    /// return address.
    fn user(&self, pid: u32, address: u64, caller: bool) -> Frame;
    /// Returns the name of the user with this number.
    fn user_name(&self, uid: u32) -> Option<String>;
    /// Returns name and path of the cgroup in each hierarchy whose name fits the pattern. An empty
    /// pattern fits all.
    fn cgroup_paths(&self, id: u64, hierarchy: &str) -> Vec<(String, String)>;
    /// Returns the text for an error number, as `strerror(3)` does.
    fn error_text(&self, number: i32) -> String;
    /// Returns the offset in nanoseconds from a clock to the time since 1970.
    fn since_epoch(&self, clock: Clock) -> i64;
    /// Formats nanoseconds since 1970 in the local time zone with `strftime(3)`; `None` if the
    /// format is invalid.
    fn local_time(&self, nanos: i64, format: &str) -> Option<String>;
}

/// Formats like [`Lookups::local_time`], with bpftrace's additions to `strftime(3)`: `%f` for
/// microseconds, `%l` for milliseconds, `%k` for nanoseconds.
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

    /// Machine that knows one function and no clock.
    pub(crate) struct EmptyLookups;

    fn known(name: &str, module: Option<&str>, address: u64) -> Vec<Symbol> {
        let offset = address.wrapping_sub(0x1000);
        let module = module.map(str::to_owned);
        let symbol = Symbol {
            name: name.to_owned(),
            offset,
            module,
            ..Symbol::default()
        };
        if offset < 0x100 {
            vec![symbol]
        } else {
            Vec::new()
        }
    }

    impl Lookups for EmptyLookups {
        fn kernel(&self, address: u64) -> Vec<Symbol> {
            known("known", None, address)
        }
        /// Returns [`Frame::NotCode`] for unknown addresses below 0x100.
        fn user(&self, pid: u32, address: u64, caller: bool) -> Frame {
            let found = known(
                &format!("own{pid}"),
                Some("/bin/a"),
                address.saturating_sub(u64::from(caller)),
            );
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
        /// Formats `%H:%M:%S` in UTC and a fixed `%Y-%m-%d`; leaves everything else as it is.
        fn local_time(&self, nanos: i64, format: &str) -> Option<String> {
            let seconds = nanos / 1_000_000_000;
            let time = format!(
                "{:02}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            );
            Some(
                format
                    .replace("%H:%M:%S", &time)
                    .replace("%Y-%m-%d", "1970-01-01"),
            )
        }
    }
}
