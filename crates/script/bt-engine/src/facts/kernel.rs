//! Facts about the kernel: its BTF, its tracepoints, its functions.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bpf_session::Features;
use bt_compiler::NotFound;
use host::{HostError, KernelSymbols, Tracefs, TracepointName};
use kernel_text::tracefs::TracepointFormat;
use text::patterns::NamePattern;

use super::{missing, missing_in_groups, pattern};
use crate::observe::printable;

/// Limit on the list of the kernel's functions, in bytes.
const FUNCTIONS: u64 = 64 << 20;
/// Prefix of a raw tracepoint's type in BTF (`include/trace/bpf_probe.h`).
const RAW_PREFIX: &[u8] = b"btf_trace_";

/// Facts about the kernel.
#[derive(Default)]
pub(crate) struct Kernel {
    symbols: Rc<OnceCell<KernelSymbols>>,
    btf: OnceCell<Option<Vec<u8>>>,
    tracefs: OnceCell<Result<Tracefs, String>>,
    /// Reason why no tracepoint could be looked up.
    refused: RefCell<Option<String>>,
    formats: RefCell<HashMap<TracepointName, Arc<TracepointFormat>>>,
    /// File that lists the functions that can be probed, if one was given.
    traceable_functions: Option<PathBuf>,
}

/// Returns the machine's tracefs, or, if none is mounted, one of our own, which leaves the
/// machine's mounts as they are.
fn find_tracefs() -> Result<Tracefs, String> {
    match Tracefs::find() {
        Err(error @ HostError::NoTracefs { .. }) => sys::mount::detached("tracefs")
            .map(Tracefs::detached)
            .map_err(|_| error.to_string()),
        found => found.map_err(|error| error.to_string()),
    }
}

impl Kernel {
    pub(super) fn new(traceable_functions: Option<PathBuf>) -> Self {
        Self {
            traceable_functions,
            ..Self::default()
        }
    }

    pub(super) fn symbols(&self) -> Rc<OnceCell<KernelSymbols>> {
        Rc::clone(&self.symbols)
    }

    pub(super) fn btf(&self) -> Option<&[u8]> {
        self.btf.get_or_init(|| host::kernel_btf().ok()).as_deref()
    }

    fn tracefs(&self) -> Result<&Tracefs, NotFound> {
        let found = self.tracefs.get_or_init(find_tracefs).as_ref();
        found.map_err(|message| self.no_tracefs(message.clone()))
    }

    /// Returns the tracepoints whose names fit.
    pub(crate) fn tracepoints(
        &self,
        category: &str,
        name: &str,
    ) -> Result<Vec<(String, String)>, NotFound> {
        let (categories, names) = (pattern(category)?, pattern(name)?);
        if categories.is_plain() && names.is_plain() {
            self.tracepoint(category, name)?;
            return Ok(vec![(category.to_owned(), name.to_owned())]);
        }
        let all = self.tracepoint_names()?;
        let fitting: Vec<_> = all
            .iter()
            .filter(|it| categories.matches(&it.category) && names.matches(&it.name))
            .map(|it| (it.category.clone(), it.name.clone()))
            .collect();
        if fitting.is_empty() {
            Err(no_tracepoint(category, name, &all))
        } else {
            Ok(fitting)
        }
    }

    fn tracepoint_names(&self) -> Result<Vec<TracepointName>, NotFound> {
        self.tracefs()?
            .names()
            .map_err(|error| self.no_tracefs(error.to_string()))
    }

    /// Returns the error if tracefs does not exist, or not for this user. That is no mistake of a
    /// script with tracepoints.
    fn no_tracefs(&self, message: String) -> NotFound {
        self.refused
            .borrow_mut()
            .get_or_insert_with(|| message.clone());
        NotFound {
            message,
            absent: false,
            hints: Vec::new(),
        }
    }

    /// Returns the reason why no tracepoint could be looked up, if so.
    pub(crate) fn tracepoints_refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// Returns the format of a tracepoint's record.
    pub(crate) fn tracepoint(
        &self,
        category: &str,
        name: &str,
    ) -> Result<Arc<TracepointFormat>, NotFound> {
        let key = TracepointName {
            category: category.to_owned(),
            name: name.to_owned(),
        };
        if let Some(known) = self.formats.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        // A path in place of a name would leave tracefs.
        let is_name =
            |text: &str| !text.is_empty() && !text.contains('/') && !text.starts_with('.');
        let format = if is_name(category) && is_name(name) {
            self.tracefs()?.format(&key).ok()
        } else {
            None
        };
        let Some(format) = format else {
            return Err(no_tracepoint(category, name, &self.tracepoint_names()?));
        };
        let format = Arc::new(format);
        self.formats.borrow_mut().insert(key, Arc::clone(&format));
        Ok(format)
    }

    /// Returns the raw tracepoints whose names fit: those of BTF, or else the names of tracepoints,
    /// which are mostly the same. Those of modules are not looked for: the kernel's BTF has its own
    /// only.
    pub(crate) fn raw_tracepoints(
        &self,
        module: Option<&str>,
        name: &str,
    ) -> Result<Vec<String>, NotFound> {
        let names = pattern(name)?;
        if let Some(module) = module
            && !pattern(module)?.matches("vmlinux")
        {
            return Err(missing(
                format!("only those of vmlinux are known, not those of {module}"),
                module,
                ["vmlinux"],
            ));
        }
        let mut known: Vec<String> = match self.btf() {
            Some(btf) => raw_names(btf, names.is_plain().then_some(name)),
            None => self
                .tracepoint_names()?
                .into_iter()
                .map(|it| it.name)
                .collect(),
        };
        known.sort();
        known.dedup();
        let fitting: Vec<String> = known
            .iter()
            .filter(|known| names.matches(known))
            .cloned()
            .collect();
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        let all = self.btf().map_or(known, |btf| raw_names(btf, None));
        Err(missing(
            format!("the kernel has no raw tracepoint {name}"),
            name,
            all.iter().map(String::as_str),
        ))
    }

    /// Returns the functions of the file that lists those that can be probed; `None` if there is
    /// none. Its lines are those of tracefs's `available_filter_functions`, which is used for a
    /// pattern if no other file is given: a name, and a module's in brackets. The kernel's symbols
    /// also have functions that are gone since it started or must not be probed.
    fn traceable(&self, is_pattern: bool) -> Result<Option<HashSet<String>>, NotFound> {
        let text = match &self.traceable_functions {
            Some(path) => {
                let bytes = host::user_file::read(path, FUNCTIONS).map_err(|error| NotFound {
                    message: format!("reading the list of functions {}: {error}", printable(path)),
                    absent: false,
                    hints: Vec::new(),
                })?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            None if is_pattern => {
                // Functions can be looked up without it, too.
                let found = self.tracefs.get_or_init(find_tracefs).as_ref().ok();
                let Some(text) = found.and_then(Tracefs::traceable_functions) else {
                    return Ok(None);
                };
                text
            }
            None => return Ok(None),
        };
        Ok(Some(
            text.lines()
                .filter_map(|line| line.split_whitespace().next())
                .map(str::to_owned)
                .collect(),
        ))
    }

    /// Returns the functions whose names fit.
    pub(crate) fn functions(
        &self,
        module: Option<&str>,
        name: &str,
    ) -> Result<Vec<String>, NotFound> {
        let names = pattern(name)?;
        let modules = module.map(pattern).transpose()?;
        if let (Some(module), true) = (module, modules.as_ref().is_some_and(NamePattern::is_plain))
            && module != "vmlinux"
            && !host::system::has_module(module)
        {
            let message = format!("/sys/module has no {module}");
            return Err(NotFound {
                message,
                absent: false,
                hints: Vec::new(),
            });
        }
        let symbols = self.symbols();
        let symbols = symbols.get_or_init(|| KernelSymbols::read().unwrap_or_default());
        let in_module = |of: Option<&str>| {
            modules
                .as_ref()
                .is_none_or(|it| it.matches(of.unwrap_or("vmlinux")))
        };
        let fitting = symbols
            .functions()
            .filter(|(function, of)| names.matches(function) && in_module(*of));
        let traceable = self.traceable(!names.is_plain())?;
        let fitting = fitting.filter(|(function, _)| {
            traceable
                .as_ref()
                .is_none_or(|known| known.contains(*function))
        });
        let mut fitting: Vec<String> = fitting.map(|(function, _)| function.to_owned()).collect();
        fitting.sort();
        fitting.dedup();
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        let all = symbols.functions().map(|(function, _)| function);
        Err(missing(
            format!("the kernel has no function {name} that can be probed"),
            name,
            all,
        ))
    }
}

fn no_tracepoint(category: &str, name: &str, all: &[TracepointName]) -> NotFound {
    let known = all
        .iter()
        .map(|it| (it.category.as_str(), it.name.as_str()));
    missing_in_groups(
        "the kernel has none of that name".to_owned(),
        Some(category),
        name,
        known,
    )
}

/// Returns the raw tracepoints in BTF's strings: all, or one if it is there.
fn raw_names(btf: &[u8], only: Option<&str>) -> Vec<String> {
    let strings = btf
        .split(|&byte| byte == 0)
        .filter_map(|text| text.strip_prefix(RAW_PREFIX));
    let names = strings.filter_map(|name| std::str::from_utf8(name).ok());
    match only {
        Some(only) => names
            .filter(|name| *name == only)
            .take(1)
            .map(str::to_owned)
            .collect(),
        None => names.map(str::to_owned).collect(),
    }
}

/// Returns all features if the kernel is new enough for them: no trial is needed then. An older
/// number proves nothing, since distributions port features back.
pub(super) fn known_features() -> Option<Features> {
    (host::system::kernel_version() >= Some((6, 10))).then_some(Features::ALL)
}
