//! Look-ups of the runtime on the machine: symbols, names, the time zone.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bt_abi::{Clock, Config};
use bt_runtime::{Frame, Lookups, SourcePlace, Symbol};
use jiff::tz::TimeZone;
use symbolize::{CodeAt, DebugFolders, KernelSymbols, SymbolOptions, UserSymbols};
use text::{patterns, printable};

use crate::observe::{Notice, SharedObserver};

/// Look-ups on the machine, each made on first use.
pub(crate) struct Machine {
    kernel: Rc<OnceCell<KernelSymbols>>,
    user: UserSymbols,
    users: OnceCell<HashMap<u32, String>>,
    cgroups: RefCell<HashMap<(u64, String), CgroupPaths>>,
    zone: OnceCell<TimeZone>,
    clocks: OnceCell<Clocks>,
    /// True if times are a map's numbers, which count from 1970.
    own_times: bool,
    observer: SharedObserver,
}

/// Hierarchies of a cgroup by name, each with its path there.
type CgroupPaths = Vec<(String, String)>;

/// Differences between clocks and the time since 1970, in nanoseconds.
#[derive(Clone, Copy)]
struct Clocks {
    boot: i64,
    monotonic: i64,
}

impl Machine {
    pub(crate) fn new(
        kernel: Rc<OnceCell<KernelSymbols>>,
        config: &Config,
        files: Vec<PathBuf>,
        folders: DebugFolders,
        observer: SharedObserver,
    ) -> Self {
        let reports = Arc::clone(&observer);
        let warn: symbolize::Warn =
            Arc::new(move |warning| reports.notice(&Notice::Symbols(warning.clone())));
        let options = SymbolOptions {
            demangle: config.cpp_demangle,
            lines: config.show_debug_info.then_some(Duration::MAX),
            probed: files,
            folders,
        };
        Self {
            kernel,
            user: UserSymbols::new(options, warn),
            users: OnceCell::new(),
            cgroups: RefCell::default(),
            zone: OnceCell::new(),
            clocks: OnceCell::new(),
            own_times: config.series_clock.is_some(),
            observer,
        }
    }
}

impl Machine {
    /// Finds symbols of processes that are gone, too, by this log of their mappings.
    pub(crate) fn read_log(&self, log: sys::CodeLog) {
        self.user.read_log(log);
    }

    /// Reads the mappings of a process: its symbols may be needed when it is gone.
    pub(crate) fn remember(&self, pid: u32) {
        self.user.remember(pid);
    }
}

/// Returns a symbol of a process as it may be printed: its files can have any names.
fn printable(symbol: symbolize::Symbol) -> Symbol {
    let place = symbol.place.map(|place| SourcePlace {
        file: plain(place.file),
        line: place.line,
    });
    let (name, module) = (plain(symbol.name), symbol.module.map(plain));
    Symbol {
        name,
        module,
        place,
        offset: symbol.offset,
        inlined: symbol.inlined,
    }
}

/// Returns foreign text as it may be printed.
fn plain(text: String) -> String {
    if printable::is_plain(text.as_bytes()) {
        text
    } else {
        printable::text(text.as_bytes()).into_owned()
    }
}

impl Clocks {
    fn now() -> Self {
        let real = sys::clock::real_nanos().cast_signed();
        let (boot, monotonic) = (
            sys::clock::boot_nanos().cast_signed(),
            sys::clock::monotonic_nanos().cast_signed(),
        );
        Self {
            boot: real - boot,
            monotonic: real - monotonic,
        }
    }
}

impl Lookups for Machine {
    fn kernel(&self, address: u64) -> Vec<Symbol> {
        let symbols = self
            .kernel
            .get_or_init(|| KernelSymbols::read().unwrap_or_default());
        let found = symbols.at(address);
        let symbol = |(name, offset): (&str, u64)| Symbol {
            name: name.to_owned(),
            offset,
            ..Symbol::default()
        };
        found.map(symbol).into_iter().collect()
    }

    fn user(&self, pid: u32, address: u64, caller: bool) -> Frame {
        self.observer.step();
        match self.user.code(pid, address, caller) {
            CodeAt::Functions(symbols) => {
                Frame::Functions(symbols.into_iter().map(printable).collect())
            }
            CodeAt::Unnamed(code) => Frame::Unnamed(plain(code.to_string())),
            CodeAt::Unknown => Frame::Unnamed(format!("{address:#x}")),
            CodeAt::NotCode => Frame::NotCode,
        }
    }

    fn user_name(&self, uid: u32) -> Option<String> {
        self.users.get_or_init(users).get(&uid).cloned()
    }

    fn cgroup_paths(&self, id: u64, hierarchy: &str) -> Vec<(String, String)> {
        let key = (id, hierarchy.to_owned());
        if let Some(known) = self.cgroups.borrow().get(&key) {
            return known.clone();
        }
        let pattern = patterns::NamePattern::parse(hierarchy).ok();
        let roots = host::cgroups::hierarchies().into_iter();
        let fitting =
            roots.filter(|(name, _)| pattern.as_ref().is_none_or(|pattern| pattern.matches(name)));
        let paths: Vec<_> = fitting
            .filter_map(|(name, root)| Some((name, host::cgroups::path(&root, id)?)))
            .collect();
        self.cgroups.borrow_mut().insert(key, paths.clone());
        paths
    }

    fn error_text(&self, number: i32) -> String {
        let text = std::io::Error::from_raw_os_error(number).to_string();
        text.split(" (os error")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    fn since_epoch(&self, clock: Clock) -> i64 {
        /// Seconds that `CLOCK_TAI` is ahead: the leap seconds, 37 since 2017 (IERS Bulletin C).
        const LEAP_SECONDS: i64 = 37;
        if self.own_times {
            return 0;
        }
        let clocks = self.clocks.get_or_init(Clocks::now);
        match clock {
            Clock::Boot => clocks.boot,
            Clock::Monotonic => clocks.monotonic,
            Clock::Tai => -LEAP_SECONDS * 1_000_000_000,
        }
    }

    fn local_time(&self, nanos: i64, format: &str) -> Option<String> {
        let zone = self.zone.get_or_init(TimeZone::system);
        let moment = jiff::Timestamp::from_nanosecond(i128::from(nanos))
            .ok()?
            .to_zoned(zone.clone());
        let time = jiff::fmt::strtime::BrokenDownTime::from(&moment);
        let config = jiff::fmt::strtime::Config::new().lenient(true);
        time.to_string_with_config(&config, format).ok()
    }
}

/// Returns the users of `/etc/passwd` (passwd(5)); the first name of a number counts.
fn users() -> HashMap<u32, String> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut users = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(uid)) = (
            fields.next(),
            fields.nth(1).and_then(|uid| uid.parse().ok()),
        ) {
            users.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::NullObserver;

    fn machine() -> Machine {
        Machine::new(
            Rc::default(),
            &Config::default(),
            Vec::new(),
            DebugFolders::default(),
            Arc::new(NullObserver),
        )
    }

    fn functions(machine: &Machine, pid: u32, address: u64) -> Vec<Symbol> {
        match machine.user(pid, address, false) {
            Frame::Functions(symbols) => symbols,
            other => panic!("{other:?}"),
        }
    }

    /// Functions at addresses of ours are found: a test is in the file that runs.
    #[test]
    fn functions_of_this_process_are_found() {
        let address = functions_of_this_process_are_found as fn() as usize as u64;
        let found = functions(&machine(), std::process::id(), address + 1);
        assert!(
            found[0]
                .name
                .ends_with("functions_of_this_process_are_found"),
            "{found:?}"
        );
        assert_eq!(found[0].offset, 1);
        assert!(
            found[0]
                .module
                .as_ref()
                .is_some_and(|module| module.contains("bt_engine"))
        );
        assert_eq!(machine().user(std::process::id(), 1, false), Frame::NotCode);
        assert_eq!(
            machine().user(u32::MAX, address, false),
            Frame::Unnamed(format!("{address:#x}"))
        );
    }

    #[test]
    fn source_lines_are_found_where_they_are_wanted() {
        let config = Config {
            show_debug_info: true,
            ..Config::default()
        };
        let machine = Machine::new(
            Rc::default(),
            &config,
            Vec::new(),
            DebugFolders::default(),
            Arc::new(NullObserver),
        );
        let address = source_lines_are_found_where_they_are_wanted as fn() as usize as u64;
        let found = functions(&machine, std::process::id(), address);
        let place = found
            .last()
            .and_then(|symbol| symbol.place.as_ref())
            .unwrap();
        assert!(
            place.file.ends_with("lookups.rs") && place.line > 100,
            "{found:?}"
        );
    }

    #[test]
    fn names_and_texts() {
        assert_eq!(machine().user_name(0).as_deref(), Some("root"));
        assert_eq!(machine().user_name(u32::MAX), None);
        assert_eq!(machine().error_text(7), "Argument list too long");
        assert_eq!(machine().cgroup_paths(u64::MAX, ""), Vec::new());
    }

    #[test]
    fn clocks_are_shown_in_the_local_time_zone() {
        let machine = machine();
        // A year that is the same in all time zones.
        let middle_of_2001 = 993_945_600_000_000_000;
        assert_eq!(
            machine.local_time(middle_of_2001, "%Y %%").as_deref(),
            Some("2001 %")
        );
        let now = sys::clock::boot_nanos().cast_signed() + machine.since_epoch(Clock::Boot);
        let real = sys::clock::real_nanos().cast_signed();
        // Even on a slow machine this is not another day.
        assert!((real - now).abs() < 86_400_000_000_000, "{real} {now}");
    }
}
