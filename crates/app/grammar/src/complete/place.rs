//! Finds the word of a command line that is to be completed.

use clap::{Arg, ArgAction, Command};

/// Word to complete, with its role.
pub struct CursorContext<'a> {
    /// Command that the word belongs to.
    pub command: &'a Command,
    pub(super) slot: Slot<'a>,
    /// Part of the word before the text to complete: `--by=lcore,`.
    pub(super) lead: String,
    /// Typed part of the text to complete.
    pub typed: String,
    /// Words before it, except an option that waits for this word as its value.
    pub before: &'a [String],
    /// Options that the command has been given so far.
    given: Vec<&'a Arg>,
}

/// Role of a word.
pub(super) enum Slot<'a> {
    /// Name of a command.
    Command,
    /// Name of an option.
    Option,
    /// Value of an option, or the N-th word of a command.
    Value(&'a Arg, usize),
}

/// State of the walk through the words.
struct Walk<'a> {
    command: &'a Command,
    /// Number of words of the command that are not options.
    words: usize,
    /// Option whose value comes next.
    waits: Option<&'a Arg>,
    /// Set after `--`.
    is_rest: bool,
    given: Vec<&'a Arg>,
}

impl<'a> CursorContext<'a> {
    /// Finds the role of the last of the words, which follow the program's name.
    pub(super) fn locate(grammar: &'a Command, words: &'a [String]) -> Option<Self> {
        let (last, before) = words.split_last()?;
        let mut walk = Walk {
            command: grammar,
            words: 0,
            waits: None,
            is_rest: false,
            given: Vec::new(),
        };
        for word in before {
            walk.step(word);
        }
        let before = if walk.waits.is_some() {
            &before[..before.len() - 1]
        } else {
            before
        };
        let (slot, lead) = walk.slot(last)?;
        let (lead, typed) = last.split_at(lead);
        let (lead, typed) = (lead.to_owned(), typed.to_owned());
        Some(Self {
            command: walk.command,
            slot,
            lead,
            typed,
            before,
            given: walk.given,
        })
    }

    /// Returns whether an option may still be given.
    pub(super) fn may_have(&self, option: &Arg) -> bool {
        let repeats = matches!(option.get_action(), ArgAction::Append | ArgAction::Count);
        repeats
            || !self
                .given
                .iter()
                .any(|given| given.get_id() == option.get_id())
    }
}

impl<'a> Walk<'a> {
    /// Advances over a word before the one to complete.
    fn step(&mut self, word: &str) {
        if let Some(option) = self.waits.take()
            && !(is_optional(option) && word.starts_with('-'))
        {
            return;
        }
        if self.is_rest {
            self.words += 1;
        } else if word == "--" {
            self.is_rest = true;
        } else if let Some((option, value)) = find_option(self.command, word) {
            self.given.push(option);
            self.waits = (value.is_none() && takes_value(option)).then_some(option);
        } else if let (0, Some(command)) = (self.words, self.command.find_subcommand(word)) {
            *self = Walk {
                command,
                words: 0,
                waits: None,
                is_rest: false,
                given: Vec::new(),
            };
        } else if !word.starts_with('-') || word == "-" {
            self.words += 1;
        }
    }

    /// Returns the role of the last word, and the number of its bytes before the text to complete.
    fn slot(&self, word: &str) -> Option<(Slot<'a>, usize)> {
        if let Some(option) = self.waits
            && !(is_optional(option) && word.starts_with('-'))
        {
            return Some((Slot::Value(option, 0), listed(option, word)));
        }
        if word.starts_with('-') && !self.is_rest {
            return Some(match find_option(self.command, word) {
                Some((option, Some(value))) if takes_value(option) => (
                    Slot::Value(option, 0),
                    word.len() - value.len() + listed(option, value),
                ),
                _ => (Slot::Option, 0),
            });
        }
        if self.words == 0 && self.command.has_subcommands() {
            return Some((Slot::Command, 0));
        }
        let positionals: Vec<&Arg> = self
            .command
            .get_positionals()
            .filter(|arg| arg.is_last_set() == self.is_rest)
            .collect();
        // The last one may be repeated.
        let several = |arg: &&&Arg| arg.get_num_args().is_some_and(|n| n.max_values() > 1);
        let arg = positionals
            .get(self.words)
            .or(positionals.last().filter(several))
            .copied();
        arg.map(|arg| (Slot::Value(arg, self.words), listed(arg, word)))
    }
}

/// Returns the option of a command that a word names, and the value in the same word.
pub fn find_option<'a, 'w>(
    command: &'a Command,
    word: &'w str,
) -> Option<(&'a Arg, Option<&'w str>)> {
    let mut options = command.get_arguments().filter(|arg| !arg.is_positional());
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value)));
        let matches = |arg: &&Arg| {
            arg.get_long_and_visible_aliases()
                .is_some_and(|names| names.contains(&name))
        };
        return options.find(matches).map(|option| (option, value));
    }
    // The last of several letters may take a value: -vp 4711, -vp4711.
    let letters = word.strip_prefix('-')?;
    let mut found = None;
    for (at, letter) in letters.char_indices() {
        let matches = |arg: &Arg| {
            arg.get_short() == Some(letter)
                || arg
                    .get_all_short_aliases()
                    .is_some_and(|all| all.contains(&letter))
        };
        let option = command.get_arguments().find(|arg| matches(arg))?;
        let rest = &letters[at + letter.len_utf8()..];
        found = Some((option, None));
        if takes_value(option) {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            return Some((option, (!rest.is_empty()).then_some(value)));
        }
    }
    found
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns whether an option's value may be omitted.
fn is_optional(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|n| n.min_values() == 0)
}

/// Returns the number of bytes of a list value before its last item.
fn listed(arg: &Arg, value: &str) -> usize {
    let is_list = arg.get_value_delimiter() == Some(',')
        || matches!(arg.get_id().as_str(), "pid" | "process");
    value
        .rfind(',')
        .filter(|_| is_list)
        .map_or(0, |comma| comma + 1)
}
