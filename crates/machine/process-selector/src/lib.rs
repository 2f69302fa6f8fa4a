//! The processes that a user names, alike on every command: by number, several of them (`12,13`), or by name.
#![forbid(unsafe_code)]

mod find;
mod message;
mod program;
mod words;

use std::collections::HashSet;

use find::run_same_program;
pub use find::{called, check_number, is_there};
pub use program::{check_process, find_program};
pub use words::join_pids;

use errors::usage;
use observer::Observer;

/// Use of processes by a command.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Name of the command, for messages.
    pub command: &'static str,
    /// Number of processes that the command takes.
    pub takes: Takes,
    /// True if it can start a program: `-- COMMAND`.
    pub starts: bool,
}

/// Number of processes that a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// One process.
    One,
    /// Several, if they all run one program: the first stands for the others.
    OneProgram,
    /// Any number, with the word for messages about all processes of one name: "measured".
    All(&'static str),
}

/// A process as it is typed.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Typed<'a> {
    Number(u32),
    Name(&'a str),
}

/// Returns the one process that the words of `-p` mean, or the one that stands for all of them.
pub fn one<S: AsRef<str>>(words: &[S], role: Role, observer: &Observer) -> anyhow::Result<u32> {
    let pids = all(words, role, observer)?;
    match pids.as_slice() {
        [pid] => return Ok(*pid),
        [first, others @ ..]
            if role.takes == Takes::OneProgram
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
    let name = match typed(words)?.as_slice() {
        [Typed::Name(name)] => Some(*name),
        _ => None,
    };
    Err(usage(message::too_many(name, &pids, role)))
}

/// Returns all processes that the words of `-p` mean, each once; at least one. If a name fits
/// several, all are taken, with a note if the command takes several.
pub fn all<S: AsRef<str>>(
    words: &[S],
    role: Role,
    observer: &Observer,
) -> anyhow::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for word in typed(words)? {
        match word {
            Typed::Number(pid) => pids.push(pid),
            Typed::Name(name) => pids.extend(of_name(name, words, role, observer)?),
        }
    }
    let mut seen = HashSet::new();
    pids.retain(|pid| seen.insert(*pid));
    if pids.is_empty() {
        return Err(usage(
            "-p names no process: if you gave -p \"$(pidof NAME)\", no process has that name",
        ));
    }
    Ok(pids)
}

/// Returns all processes of this name, which may be a number as well.
pub fn all_called(name: &str, role: Role, observer: &Observer) -> anyhow::Result<Vec<u32>> {
    of_name(name, &[name], role, observer)
}

/// Returns the living processes of a name, at least one. `words` is everything that was typed.
fn of_name<S: AsRef<str>>(
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
    if let Takes::All(verb) = role.takes
        && found.len() > 1
    {
        observer.note(&message::several(name, &found, verb));
    }
    Ok(found)
}

/// Splits the words at commas; numbers also at blanks and line ends, as `"$(pidof nginx)"` and
/// `"$(pgrep nginx)"` give them. Names can have blanks.
fn typed<S: AsRef<str>>(words: &[S]) -> anyhow::Result<Vec<Typed<'_>>> {
    let mut typed = Vec::new();
    for word in words {
        let word = word.as_ref();
        let is_separator = |c: char| c == ',' || c.is_whitespace();
        let numbers = word
            .split(is_separator)
            .all(|part| part.is_empty() || is_number(part));
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
            typed.push(if is_number(part) {
                Typed::Number(number(part)?)
            } else {
                Typed::Name(part)
            });
        }
    }
    Ok(typed)
}

/// Returns the process that the words of `-p` mean, if that is clear; nothing is reported.
pub fn meant<S: AsRef<str>>(words: &[S]) -> Option<u32> {
    match typed(words).ok()?.as_slice() {
        [Typed::Number(pid)] => Some(*pid),
        [Typed::Name(name)] => called(name).first().copied(),
        _ => None,
    }
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

/// Returns true if the words are numbers of processes, and no names.
pub fn are_numbers<S: AsRef<str>>(words: &[S]) -> bool {
    typed(words).is_ok_and(|typed| typed.iter().all(|word| matches!(word, Typed::Number(_))))
}

/// Returns true if a word can be the number of a process.
pub fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
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
        use Typed::{Name, Number};
        let check = |word: &str, expected: &[Typed<'_>]| {
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
}
