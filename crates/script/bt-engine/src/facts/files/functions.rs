//! Functions of files, by name, address and line of the source.

use std::borrow::Cow;

use bt_compiler::{FunctionPlace, NotFound};
use elf::symbols::{Function, Functions};
use elf::{Code, ElfVaddr, ProbePoint};
use host::ElfFile;
use text::patterns::NamePattern;
use typeinfo::{DwarfSections, SourceLine};

use super::{UserFiles, not_read, place_text};
use crate::facts::{missing, pattern};

impl UserFiles {
    pub(in crate::facts) fn functions(
        &self,
        target: Option<&str>,
        function: &str,
        cpp: bool,
        aim: ProbePoint,
    ) -> Result<Vec<FunctionPlace>, NotFound> {
        let names = pattern(function)?;
        let targets = self.targets(target)?;
        let mut known: Vec<String> = Vec::new();
        let mut stripped = None;
        let mut chosen = None;
        let all = targets.each(|found| {
            let file = self.load(found)?;
            let of_file = self.with_functions(&file, |functions, code| {
                if functions.is_stripped() {
                    stripped.get_or_insert_with(|| stripped_hint(&found.shown));
                }
                let place = |name: &str, function: &elf::symbols::Function<'_>| FunctionPlace {
                    path: file.opened().to_owned(),
                    shown: found.shown.clone(),
                    name: name.to_owned(),
                    offset: function.offset.0,
                    size: function.size,
                    vaddr: function.vaddr.0,
                    at: code.function(function, aim),
                };
                let mut fitting: Vec<FunctionPlace> = Vec::new();
                for function in functions.all() {
                    let Some(shown) = fitting_name(function, &names, cpp) else {
                        continue;
                    };
                    if !function.indirect {
                        fitting.push(place(&shown, function));
                    } else if names.is_plain() {
                        chosen = chosen.take().or_else(|| functions.choice(&function.name));
                    }
                }
                if fitting.is_empty() && known.len() < 200_000 {
                    known.extend(
                        functions
                            .all()
                            .iter()
                            .map(|function| function.name.clone().into_owned()),
                    );
                }
                fitting
            })?;
            Ok(of_file)
        })?;
        if all.is_empty() {
            if let Some(chosen) = chosen {
                return Err(NotFound {
                    message: chosen.to_string(),
                    absent: false,
                    hints: vec![chosen.hint()],
                });
            }
            let place = place_text(target, &targets);
            let message = format!("{place} has no function {function}");
            let mut missing = missing(message, function, known.iter().map(String::as_str));
            missing.hints.splice(0..0, stripped);
            return Err(missing);
        }
        Ok(all)
    }

    pub(in crate::facts) fn address(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: ProbePoint,
    ) -> Result<FunctionPlace, NotFound> {
        let targets = self.targets(target)?;
        let found = targets.each(|found| {
            let file = self.load(found)?;
            let image = file.image().map_err(|error| not_read(&error))?;
            let offset = image.address_map().to_offset(ElfVaddr(vaddr));
            let message = || format!("{} has nothing at {vaddr:#x}", found.shown);
            let offset = offset
                .map_err(|_| NotFound {
                    message: message(),
                    absent: false,
                    hints: Vec::new(),
                })?
                .0;
            let (path, shown) = (file.opened().to_owned(), found.shown.clone());
            let (named, at) = self.with_functions(&file, |functions, code| {
                let holds = |it: &&elf::symbols::Function<'_>| {
                    vaddr
                        .checked_sub(it.vaddr.0)
                        .is_some_and(|behind| behind < it.size.max(1))
                };
                let named = functions
                    .all()
                    .iter()
                    .find(holds)
                    .map(|it| (it.name.clone().into_owned(), it.size));
                (named, code.address(ElfVaddr(vaddr), aim))
            })?;
            let (name, size) = named.unwrap_or_default();
            Ok(vec![FunctionPlace {
                path,
                shown,
                name,
                offset,
                size,
                vaddr,
                at,
            }])
        })?;
        let message = || format!("no file has anything at {vaddr:#x}");
        found.into_iter().next().ok_or_else(|| NotFound {
            message: message(),
            absent: false,
            hints: Vec::new(),
        })
    }

    /// Returns the place of a line of the source.
    pub(in crate::facts) fn source_line(
        &self,
        target: &str,
        wanted: &SourceLine<'_>,
    ) -> Result<FunctionPlace, NotFound> {
        let targets = self.targets(Some(target))?;
        for found in &targets.files {
            let sections = self
                .debug(&found.shown)
                .and_then(|elf| DwarfSections::from_elf(elf).ok());
            if let Some(vaddr) = sections.and_then(|sections| sections.line_address(wanted)) {
                return self.address(Some(target), vaddr, ProbePoint::Within(0));
            }
        }
        let message = format!("{target} has no code of {}:{}", wanted.file, wanted.line);
        let hint = "lines are known only for programs built with -g, and not every line has code"
            .to_owned();
        Err(NotFound {
            message,
            absent: true,
            hints: vec![hint],
        })
    }

    fn with_functions<T>(
        &self,
        file: &ElfFile,
        look: impl FnOnce(&Functions<'_>, &Code<'_>) -> T,
    ) -> Result<T, NotFound> {
        let debug = self.debug_folders.debug_file(file);
        let debug = debug.as_ref().and_then(|debug| debug.image().ok());
        let image = file.image().map_err(|error| not_read(&error))?;
        let functions = Functions::read(&image, debug.as_ref());
        let code = Code::with_functions(&image, &image, &functions);
        Ok(look(&functions, &code))
    }
}

/// Returns the name that a function is shown by, if the pattern matches it. A name of C++ matches
/// with and without its arguments.
fn fitting_name<'f>(
    function: &'f Function<'_>,
    names: &NamePattern,
    cpp: bool,
) -> Option<Cow<'f, str>> {
    if !cpp {
        let name = &*function.name;
        return names.matches(name).then_some(Cow::Borrowed(name));
    }
    let shown = function.display_name();
    let without = shown.split('(').next().unwrap_or_default();
    (names.matches(&shown) || names.matches(without)).then_some(shown)
}

/// Returns a hint for users who look for a function in a file without names of its own functions.
fn stripped_hint(file: &str) -> String {
    format!("{file} is stripped, and has no debug file here: only exported functions have names")
}
