//! Names for code that a process makes at run time, from the file that it writes for perf: a line
//! for each function, with its address and size in hex and its name (the kernel's
//! `tools/perf/Documentation/jit-interface.txt`). Any process can write anything to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::{Duration, Instant};

use host::Process;

use super::UserSymbols;
use crate::warning::printable;
use crate::{CodeAt, Symbol, UnnamedCode, Warning};

/// Shortest time between two reads of a process's names.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// Shortest time between two reads, as a multiple of the duration of the last one.
const READ_FACTOR: u32 = 10;
/// Limit on the functions that are kept of a process. A large Java program has some ten thousand.
const MAX_FUNCTIONS: usize = 1 << 18;
/// Limit on the length of a name, in bytes; the rest is cut.
const MAX_NAME: usize = 1024;

/// Names of a process.
pub(super) struct JitNames {
    /// Start time of the process: its number may be another's later.
    born: Option<u64>,
    state: RefCell<State>,
}

struct State {
    names: Names,
    /// Path of the file.
    path: String,
    /// Length of the file when it was read, in bytes.
    length: Option<u64>,
    /// Time from which it may be read again.
    due: Option<Instant>,
    warned: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.due.is_none_or(|due| Instant::now() >= due)
    }
}

/// Functions by their first address.
#[derive(Default)]
struct Names {
    functions: BTreeMap<u64, (u64, Box<str>)>,
}

impl Names {
    /// Parses the text; other lines are left out. Memory is reused for other functions: a later
    /// line removes functions that it overlaps. If there are more than `MAX_FUNCTIONS` lines, the
    /// last ones count, since the memory of earlier ones may have other code now.
    fn parse(text: &[u8]) -> Self {
        let mut names = Self::default();
        let lines = || text.split(|byte| *byte == b'\n');
        let skipped = lines().count().saturating_sub(MAX_FUNCTIONS + 1);
        for line in lines().skip(skipped) {
            if let Some((start, end, name)) = function(line) {
                names.add(start, end, name);
            }
        }
        names
    }

    fn add(&mut self, start: u64, end: u64, name: &[u8]) {
        while let Some((&known, _)) = self
            .functions
            .range(..end)
            .next_back()
            .filter(|(_, (end, _))| *end > start)
        {
            self.functions.remove(&known);
        }
        self.functions
            .insert(start, (end, String::from_utf8_lossy(name).into()));
    }

    /// Returns the function that holds an address, and the offset from its first byte.
    fn at(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then(|| (&**name, address - start))
    }

    /// Returns the limit on the memory of the names in a file of this length, in bytes.
    fn memory(length: usize) -> usize {
        /// Bytes of a node of the tree: a key, an end, and a pointer to a name with its length.
        const ENTRY: usize = 48;
        /// Length of the shortest line: `1 1 a`.
        const LINE: usize = 6;
        length.saturating_add((length / LINE).min(MAX_FUNCTIONS) * ENTRY)
    }
}

/// Returns an error's text without the number that the library puts behind it.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Parses a line; returns its first address, the one behind its last, and its name.
fn function(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let digits = std::str::from_utf8(fields.next()?).ok()?;
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u64::from_str_radix(digits, 16).ok())?
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?.trim_ascii();
    let end = start.checked_add(size).filter(|end| *end > start)?;
    (!name.is_empty()).then(|| (start, end, &name[..name.len().min(MAX_NAME)]))
}

impl UserSymbols {
    /// Returns the function at an address of memory that is no file's.
    pub(super) fn jit(&self, process: &Process, address: u64) -> CodeAt {
        let known = self.jit_names(process);
        let mut state = known.state.borrow_mut();
        if state.is_due() {
            self.read_jit(process, &mut state);
            let weight = size_of::<JitNames>()
                + state
                    .length
                    .map_or(0, |length| Names::memory(length as usize));
            self.jit
                .borrow_mut()
                .insert(process.pid().0, Rc::clone(&known), weight);
        }
        let State { names, path, .. } = &*state;
        match names.at(address) {
            Some((name, offset)) => {
                let (name, module) = (self.shown(name), Some(path.clone()));
                CodeAt::Functions(vec![Symbol {
                    name,
                    offset,
                    module,
                    ..Symbol::default()
                }])
            }
            None => CodeAt::Unnamed(UnnamedCode {
                address,
                module: None,
            }),
        }
    }

    fn jit_names(&self, process: &Process) -> Rc<JitNames> {
        let pid = process.pid();
        let known = self.jit.borrow_mut().get(&pid.0);
        if let Some(known) = &known
            && !known.state.borrow().is_due()
        {
            return Rc::clone(known);
        }
        let born = host::proc::start_of_living(pid);
        // Keep the names of a process that has exited.
        known
            .filter(|known| born.is_none() || known.born == born)
            .unwrap_or_else(|| {
                let (names, path) = (Names::default(), String::new());
                let state = State {
                    names,
                    path,
                    length: None,
                    due: None,
                    warned: false,
                };
                Rc::new(JitNames {
                    born,
                    state: RefCell::new(state),
                })
            })
    }

    fn read_jit(&self, process: &Process, state: &mut State) {
        let start = Instant::now();
        match process.perf_map(state.length) {
            Ok(None) => {}
            Ok(Some(map)) => {
                state.names = Names::parse(&map.text);
                state.path = map.path.display().to_string();
                state.length = Some(map.text.len() as u64);
            }
            Err(error) => {
                // A process that has exited keeps the names that it had.
                let lives = host::proc::start_of_living(process.pid()).is_some();
                if lives && error.kind() != ErrorKind::NotFound {
                    // Names that cannot be read any more may be of code that is gone.
                    (state.names, state.length) = (Names::default(), None);
                }
                if lives && state.length.is_none() && !state.warned {
                    state.warned = true;
                    let file = printable(&process.perf_map_path());
                    let reason = (error.kind() != ErrorKind::NotFound).then(|| reason(&error));
                    (self.warn)(&Warning::NoJitNames {
                        pid: process.pid().0,
                        file,
                        reason,
                    });
                }
            }
        }
        let now = Instant::now();
        state.due = Some(now + READ_INTERVAL.max((now - start) * READ_FACTOR));
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let text =
            b"1000 10 first\n0x1010 8 second with blanks \xff\nnonsense\n2000 0 empty\nffffffffffffffff 8 wraps\n\
                     3000 -8 sign\n3000 8\n3000 8  \n1018 8 last";
        let names = Names::parse(text);
        assert_eq!(names.at(0xfff), None);
        assert_eq!(names.at(0x100f), Some(("first", 15)));
        assert_eq!(names.at(0x1010), Some(("second with blanks \u{fffd}", 0)));
        assert_eq!(names.at(0x101f), Some(("last", 7)));
        assert_eq!(names.at(0x1020), None);
        assert_eq!(names.functions.len(), 3);
    }

    #[test]
    fn later_functions_take_the_place_of_earlier_ones() {
        let names = Names::parse(b"1000 100 old\n1100 100 older\n1080 100 new\n");
        assert_eq!(
            (names.at(0x1000), names.at(0x1090), names.at(0x1190)),
            (None, Some(("new", 16)), None)
        );
        let names = Names::parse(b"1000 10 a\n1010 10 b\n0 ffff all\n");
        assert_eq!(
            (names.at(0x1000), names.functions.len()),
            (Some(("all", 0x1000)), 1)
        );
    }

    #[test]
    fn names_and_functions_are_limited() {
        let long = [b"1000 10 ".as_slice(), &[b'x'; 5000]].concat();
        assert_eq!(
            Names::parse(&long).at(0x1000).map(|(name, _)| name.len()),
            Some(MAX_NAME)
        );
        assert!(Names::memory(32 << 20) < 64 << 20);
        let mut many = String::new();
        for n in 0..MAX_FUNCTIONS + 2 {
            writeln!(many, "{:x} 1 f{n}", 0x1000 + n).unwrap();
        }
        let names = Names::parse(many.as_bytes());
        assert_eq!(
            (names.at(0x1001), names.functions.len()),
            (None, MAX_FUNCTIONS)
        );
        assert_eq!(names.at(0x1002), Some(("f2", 0)), "the last ones count");
    }
}
