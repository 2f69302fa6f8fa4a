//! Handles events: text for the output, commands, complaints.

use std::io::Write as _;
use std::process::{Command, Stdio};

use bt_engine::{Event, PrintTo, Span};
use bt_runtime::{Printer, Table};
use console::interrupt::commanding;
use console::messages::note;
use console::output::Output;

use super::failures;
use super::source::ScriptText;
use super::stacks::StackCollector;

/// Printer of events.
pub(super) struct EventPrinter<'a> {
    pub(super) text: &'a ScriptText,
    pub(super) printer: Printer,
    pub(super) warnings: bool,
    /// Collector of stacks, which are not printed then.
    pub(super) stacks: Option<StackCollector>,
}

impl EventPrinter<'_> {
    /// Carries out an event.
    pub(super) fn show(&self, event: Event, output: &mut Output) -> anyhow::Result<()> {
        let shown = match event {
            Event::Printf {
                text,
                to,
                span,
                callers,
                ..
            } => self.printf(&text, to, span, &callers),
            Event::Value(value) => self.printer.value(&value),
            Event::Map(table) if self.takes_stacks(&table) => String::new(),
            Event::Map(table) => self.printer.map(&table),
            Event::Element(cell) => self.printer.cell(&cell),
            Event::Time(text) => self.printer.words("time", &text),
            Event::Join(text) => self.printer.line("join", &text),
            Event::Cat { path, limit, .. } => self.cat(&path, limit),
            Event::System(command) => {
                // Earlier output must precede the command's output.
                output.flush()?;
                self.system(&command)
            }
            Event::Failure(failure) if self.warnings => {
                failures::first(&failure, self.text, self.printer)
            }
            // The session is over then, and reports that itself.
            _ => String::new(),
        };
        Ok(output.buffer.write_all(shown.as_bytes())?)
    }

    /// Takes the stacks of a map if they are collected; returns false if it has none.
    fn takes_stacks(&self, table: &Table) -> bool {
        let stacks = self.stacks.as_ref();
        stacks.is_some_and(|stacks| stacks.take_table(table))
    }

    fn printf(&self, words: &str, to: PrintTo, span: Span, callers: &[Span]) -> String {
        let complain = |kind: &str, word: &str| {
            let place = self.text.place(span);
            if !self.printer.is_json() {
                print_error(&format!(
                    "{}: {word}: {}",
                    place.shown(),
                    words.trim_end_matches('\n')
                ));
                for caller in callers {
                    let place = self.text.place(*caller);
                    print_error(&format!(
                        "{}: {word}: expanded from\n{}",
                        place.shown(),
                        self.text.context(&place)
                    ));
                }
            }
            self.printer
                .complaint(kind, words, &self.text.in_json(place))
        };
        match to {
            PrintTo::Error => complain("errorf", "ERROR"),
            PrintTo::Warning if self.warnings => complain("warnf", "WARNING"),
            PrintTo::Warning => String::new(),
            _ => match &self.stacks {
                Some(stacks) => self.printer.words("printf", &stacks.take_lines(words)),
                None => self.printer.words("printf", words),
            },
        }
    }

    fn cat(&self, path: &str, limit: u64) -> String {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        if let Err(error) = read {
            note(&format!("cat: failed to open file '{path}': {error}"));
        }
        self.printer.file(&bytes)
    }

    fn system(&self, command: &str) -> String {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let ran = commanding(|| shell.output());
        match ran {
            Ok(ran) if self.printer.is_json() => self
                .printer
                .words("syscall", &String::from_utf8_lossy(&ran.stdout)),
            Ok(ran) => String::from_utf8_lossy(&ran.stdout).into_owned(),
            Err(error) => {
                note(&format!("system: {error}"));
                String::new()
            }
        }
    }
}

/// Prints on standard error what the script writes there.
pub(super) fn print_error(text: &str) {
    // If standard error is gone, nobody reads it.
    let _ = writeln!(std::io::stderr(), "{text}");
}
