//! Processes that a user names, in the same way for every command: by number, several of them
//! (`12,13`), or by name.
#![forbid(unsafe_code)]

mod choice;
mod find;
mod message;
mod program;
mod words;

use std::collections::HashSet;

use find::run_same_program;
pub use find::{NoProcess, called, check_number, founders, is_there};
pub use program::{check_process, find_program};
pub use words::join_pids;

use errors::usage;
use observer::Observer;
use text::number::is_digits;

/// Use of processes by a command.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Name of the command, for messages.
    pub command: &'static str,
    /// Number of processes that the command takes.
    pub takes: ProcessCount,
    /// True if it can start a program: `-- COMMAND`.
    pub starts: bool,
}

/// Number of processes that a command takes.
#[derive(Clone, Copy, Debug)]
pub enum ProcessCount {
    /// One process.
    One,
    /// One process with a trace, with the function that returns whether a process has one.
    OneTraced(fn(u32) -> bool),
    /// Several, if they all run one program: the first stands for the others.
    OneProgram,
    /// Any number, with the word for messages about all processes of one name: "measured".
    All(&'static str),
}

/// A process as it is typed.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TypedProcess<'a> {
    Number(u32),
    Name(&'a str),
}

/// Processes as a user names them: by the words of `-p` and of the command line, or by `--name`.
#[derive(Clone, Debug, Default)]
pub struct ProcessSelector {
    words: Vec<String>,
    /// True if the word is a name even if it looks like a number (`--name`).
    is_name: bool,
    with_children: bool,
}

impl ProcessSelector {
    /// Creates a selector of the processes that these words mean, each a number, several numbers
    /// (`12,13`) or a name.
    pub fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Creates a selector of all processes with this name, which may look like a number.
    pub fn from_name(name: impl Into<String>) -> Self {
        Self {
            is_name: true,
            ..Self::new([name])
        }
    }

    /// Selects the processes of this name, if the user has named none.
    #[must_use]
    pub fn or_name(self, default: &str) -> Self {
        if self.is_empty() {
            Self {
                with_children: self.with_children,
                ..Self::from_name(default)
            }
        } else {
            self
        }
    }

    /// Selects the processes that these have started, too, if the user wants them (`--children`).
    #[must_use]
    pub fn with_children(self, with_children: bool) -> Self {
        Self {
            with_children,
            ..self
        }
    }

    /// Returns true if the user has named no process.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the one process that is named, or the one that stands for all of them, or that is
    /// meant by a name of several.
    ///
    /// # Errors
    ///
    /// Fails if there is no such process, or there are several that the role does not permit. The
    /// message lists the candidates.
    pub fn one(&self, role: Role, observer: &Observer) -> anyhow::Result<u32> {
        let pids = self.all(role, observer)?;
        match pids.as_slice() {
            [pid] => return Ok(*pid),
            [first, others @ ..]
                if matches!(role.takes, ProcessCount::OneProgram)
                    && others.iter().all(|it| run_same_program(*first, *it)) =>
            {
                observer.note(&format!(
                    "{} processes run this program: shown as process {first} has it",
                    pids.len()
                ));
                return Ok(*first);
            }
            _ => {}
        }
        let name = match self.typed()?.as_slice() {
            [TypedProcess::Name(name)] => Some(*name),
            _ => None,
        };
        if let Some(name) = name
            && let Some(chosen) = choice::choose(&pids, role)
        {
            observer.note(&message::chosen(name, pids.len(), &chosen));
            return Ok(chosen.pid);
        }
        Err(usage(message::too_many(name, &pids, role)))
    }

    /// Returns all processes that are named, each once; at least one. If a name fits several, all
    /// are taken, with a note if the command takes several.
    ///
    /// # Errors
    ///
    /// Fails if there is no process of a name, or a number is too large for one.
    pub fn all(&self, role: Role, observer: &Observer) -> anyhow::Result<Vec<u32>> {
        let mut pids = Vec::new();
        for word in self.typed()? {
            match word {
                TypedProcess::Number(pid) => pids.push(pid),
                TypedProcess::Name(name) => {
                    pids.extend(processes_of(name, &self.words, role, observer)?);
                }
            }
        }
        if pids.is_empty() {
            return Err(usage(
                "-p names no process: if you gave -p \"$(pidof NAME)\", no process has that name",
            ));
        }
        if self.with_children {
            pids.extend(host::family::descendants(&pids));
        }
        let mut seen = HashSet::new();
        pids.retain(|pid| seen.insert(*pid));
        Ok(pids)
    }

    /// Returns all processes as [`Self::all`] does, after checking that those named by their numbers
    /// can be traced. If some of these do not exist, as when one of a pasted list has ended, the
    /// others are taken, with a note. `and` is the text to add to the error for a thread's number.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::all`] and [`check_number`] do; with [`NoProcess`] if no process is left.
    pub fn all_traceable(
        &self,
        role: Role,
        and: &str,
        observer: &Observer,
    ) -> anyhow::Result<Vec<u32>> {
        let mut pids = self.all(role, observer)?;
        let mut ended = Vec::new();
        // A process found by name may have ended by now, which is no mistake.
        for word in self.typed()? {
            let TypedProcess::Number(pid) = word else {
                continue;
            };
            if ended.contains(&pid) {
                continue;
            }
            if let Err(error) = check_number(pid, and) {
                match error.downcast_ref::<NoProcess>() {
                    Some(_) if pids.len() > 1 => {
                        pids.retain(|other| *other != pid);
                        ended.push(pid);
                    }
                    _ => return Err(error),
                }
            }
        }
        for pid in ended {
            observer.note(&format!("{}: left out", NoProcess(pid)));
        }
        Ok(pids)
    }

    /// Returns the process that is named, if that is clear; nothing is reported.
    pub fn if_clear(&self) -> Option<u32> {
        match self.typed().ok()?.as_slice() {
            [TypedProcess::Number(pid)] => Some(*pid),
            [TypedProcess::Name(name)] => called(name).first().copied(),
            _ => None,
        }
    }

    fn typed(&self) -> anyhow::Result<Vec<TypedProcess<'_>>> {
        if self.is_name {
            Ok(self
                .words
                .iter()
                .map(|name| TypedProcess::Name(name))
                .collect())
        } else {
            typed(&self.words)
        }
    }
}

/// Returns the living processes of a name, at least one. `words` is everything that was typed.
fn processes_of<S: AsRef<str>>(
    name: &str,
    words: &[S],
    role: Role,
    observer: &Observer,
) -> anyhow::Result<Vec<u32>> {
    let found = called(name);
    if found.is_empty() {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        return Err(message::not_there(name, &words, role));
    }
    if let ProcessCount::All(verb) = role.takes
        && found.len() > 1
    {
        observer.note(&message::several(name, &found, verb, role));
    }
    Ok(found)
}

/// Splits the words at commas; numbers also at blanks and line ends, as `"$(pidof nginx)"` and
/// `"$(pgrep nginx)"` give them. Names can have blanks.
fn typed<S: AsRef<str>>(words: &[S]) -> anyhow::Result<Vec<TypedProcess<'_>>> {
    let mut typed = Vec::new();
    for word in words {
        let word = word.as_ref();
        let is_separator = |c: char| c == ',' || c.is_whitespace();
        let numbers = word
            .split(is_separator)
            .all(|part| part.is_empty() || is_digits(part));
        let parts: Vec<&str> = if numbers {
            word.split(is_separator).collect()
        } else {
            word.split(',').collect()
        };
        for part in parts
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            typed.push(if is_digits(part) {
                TypedProcess::Number(number(part)?)
            } else {
                TypedProcess::Name(part)
            });
        }
    }
    Ok(typed)
}

/// Returns a note that a process has children, which a command ignores without `--children`; for
/// several processes, that one has started others of them, and may start more. `None` if neither is
/// so.
pub fn children_left_out(pids: &[u32]) -> Option<String> {
    match pids {
        [pid] => message::children_left_out(*pid, find::children(*pid)),
        several => find::parent_among(several).map(message::later_left_out),
    }
}

/// Returns a note that processes have started `count` others since, which a command ignored without
/// `--children`.
pub fn started_since(count: usize) -> Option<String> {
    message::started_since(count)
}

fn number(word: &str) -> anyhow::Result<u32> {
    word.parse()
        .map_err(|_| anyhow::anyhow!("no process has the pid {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbers_and_names() {
        use TypedProcess::{Name, Number};
        let check = |word: &str, expected: &[TypedProcess<'_>]| {
            assert_eq!(typed(&[word]).unwrap(), expected, "{word:?}");
        };
        check("12", &[Number(12)]);
        for several in ["12,13", "12 13", "12\n13\n", " 12, 13,"] {
            check(several, &[Number(12), Number(13)]);
        }
        check("nginx,12", &[Name("nginx"), Number(12)]);
        check("tmux: server", &[Name("tmux: server")]);
        check("1x", &[Name("1x")]);
        check("-1", &[Name("-1")]);
        check(" , ", &[]);
        assert!(
            typed(&["99999999999"])
                .unwrap_err()
                .to_string()
                .contains("no process has the pid 99999999999")
        );
    }

    /// One of a pasted list may have ended; all of them is a mistake.
    #[test]
    fn a_process_of_a_list_that_has_ended_is_left_out() {
        let role = Role {
            command: "kernel-delay",
            takes: ProcessCount::All("measured"),
            starts: false,
        };
        let mut ended = testkit::command("true").spawn().unwrap();
        ended.wait().unwrap();
        let (own, ended) = (std::process::id(), ended.id());
        let found = |word: String| {
            ProcessSelector::new([word]).all_traceable(role, "", &Observer::silent())
        };
        assert_eq!(found(format!("{ended},{own},{ended}")).unwrap(), [own]);
        assert_eq!(
            found(format!("{ended},{ended}")).unwrap_err().to_string(),
            format!("no process has the pid {ended}")
        );
    }
}
