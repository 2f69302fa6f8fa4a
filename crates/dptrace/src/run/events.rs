//! Events: what has left the ring, and what is done for each.

use std::io::Write as _;
use std::process::{Command, Stdio};

use bpf_session::Session;
use bt_abi::Script;
use bt_abi::action::{ACTION, TIME};
use bt_abi::{Action, ActionKind, PrintTo};
use bt_runtime::table::{Table, Wish, element};
use bt_runtime::{Decoder, Lookups as _, Printer, Value, printf};

use super::lookups::Machine;
use super::maps;
use super::source::ScriptText;
use crate::failure::note;
use crate::output::Output;

/// The most of a file that `cat` prints.
const MAX_CAT: u64 = 10 * 1024;

/// An event that has left the ring.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) time: u64,
    action: usize,
    bytes: Box<[u8]>,
}

impl Event {
    /// An event's bytes, if they are one of the script's.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let time = u64::from_le_bytes(*bytes.get(TIME..)?.first_chunk()?);
        let action = u32::from_le_bytes(*bytes.get(ACTION..)?.first_chunk()?) as usize;
        Some(Self { time, action, bytes: bytes.into() })
    }
}

/// An event with its values, which were looked up when it came: a process may be gone when it is shown.
#[derive(Debug)]
pub(super) struct Ready {
    action: usize,
    values: Vec<Value>,
    bytes: Box<[u8]>,
}

/// Does what events ask for.
pub(super) struct Events<'a> {
    pub(super) script: &'a Script,
    pub(super) text: &'a ScriptText,
    pub(super) machine: &'a Machine,
    pub(super) decoder: Decoder<'a>,
    pub(super) printer: Printer,
    pub(super) warnings: bool,
    /// The status that `exit` gave.
    pub(super) exit: Option<u8>,
}

impl Events<'_> {
    /// Looks up an event's values; says whether it asks for the end.
    pub(super) fn take(&self, event: Event) -> Option<(Ready, bool)> {
        let action = self.script.actions.get(event.action)?;
        let values = self.decoder.fields(&action.fields, &event.bytes);
        let is_exit = matches!(action.kind, ActionKind::Exit);
        Some((Ready { action: event.action, values, bytes: event.bytes }, is_exit))
    }

    /// Does what an event asks for. Nothing, once there was an `exit`.
    pub(super) fn show(&mut self, ready: &Ready, session: &Session, output: &mut Output) -> anyhow::Result<()> {
        let action = &self.script.actions[ready.action];
        let values = ready.values.as_slice();
        let shown = match &action.kind {
            ActionKind::Printf { format, to } => self.printf(&printf::format(format, values), *to, action),
            ActionKind::PrintValue => values.first().map_or_else(String::new, |value| self.printer.value(value)),
            ActionKind::PrintMap { map } => self.print_map(*map, values, session),
            ActionKind::PrintElement { map } => self.print_element(*map, ready, action, session),
            ActionKind::Clear { map } => {
                self.script.maps.get(*map).into_iter().for_each(|map| maps::clear(session, map));
                String::new()
            }
            ActionKind::Zero { map } => {
                self.script.maps.get(*map).into_iter().for_each(|map| maps::zero(session, map));
                String::new()
            }
            ActionKind::Exit => {
                self.exit = Some(number(values.first()) as u8);
                String::new()
            }
            ActionKind::Time { format } => {
                let now = sys::clock::real_nanos().cast_signed();
                self.printer.words("time", &self.machine.local_time(now, format).unwrap_or_default())
            }
            ActionKind::Join { delimiter } => self.printer.line("join", &joined(values, delimiter)),
            ActionKind::Cat { format } => self.cat(&printf::format(format, values)),
            ActionKind::System { format } => {
                // What was printed before is to stand before what the command prints.
                output.flush()?;
                self.system(&printf::format(format, values))
            }
        };
        Ok(output.buffer.write_all(shown.as_bytes())?)
    }

    fn printf(&self, words: &str, to: PrintTo, action: &Action) -> String {
        let complain = |kind: &str, word: &str| {
            let place = self.text.place(action.span);
            if !self.printer.is_json() {
                tell(&format!("{}: {word}: {}", place.shown(), words.trim_end_matches('\n')));
                for caller in &action.callers {
                    let place = self.text.place(*caller);
                    tell(&format!("{}: {word}: expanded from\n{}", place.shown(), self.text.context(&place)));
                }
            }
            self.printer.complaint(kind, words, &place)
        };
        match to {
            PrintTo::Output => self.printer.words("printf", words),
            PrintTo::Error => complain("errorf", "ERROR"),
            PrintTo::Warning if self.warnings => complain("warnf", "WARNING"),
            PrintTo::Warning => String::new(),
        }
    }

    fn print_map(&self, map: usize, values: &[Value], session: &Session) -> String {
        let Some(map) = self.script.maps.get(map) else { return String::new() };
        let wish = Wish { top: number(values.first()) as u64, div: number(values.get(1)) as u64 };
        let elements = maps::elements(session, map);
        self.printer.map(&Table::printed(map, &elements, wish, &self.decoder))
    }

    fn print_element(&self, map: usize, ready: &Ready, action: &Action, session: &Session) -> String {
        if let Some(value) = ready.values.get(1) {
            return self.printer.value(value);
        }
        let Some(map) = self.script.maps.get(map) else { return String::new() };
        let key = action.fields.first().and_then(|field| {
            let start = field.offset as usize;
            ready.bytes.get(start..start + field.ty.size() as usize)
        });
        let zero = || vec![vec![0; map.value.size() as usize]];
        let values = maps::element(session, map, key.unwrap_or_default()).unwrap_or_else(zero);
        self.printer.cell(&element(map, &values, &self.decoder))
    }

    fn cat(&self, path: &str) -> String {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let setting = self.script.config.others.iter().find(|(name, _)| name == "max_cat_bytes");
        let most = setting.and_then(|(_, value)| value.parse().ok()).unwrap_or(MAX_CAT);
        let read = std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        if let Err(error) = read {
            note(&format!("cat: failed to open file '{path}': {error}"));
        }
        self.printer.file(&bytes)
    }

    fn system(&self, command: &str) -> String {
        let ran = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        match ran {
            Ok(ran) if self.printer.is_json() => self.printer.words("syscall", &String::from_utf8_lossy(&ran.stdout)),
            Ok(ran) => String::from_utf8_lossy(&ran.stdout).into_owned(),
            Err(error) => {
                note(&format!("system: {error}"));
                String::new()
            }
        }
    }
}

/// What a field says as a number.
fn number(value: Option<&Value>) -> i128 {
    value.and_then(Value::number).unwrap_or_default()
}

/// The strings of an array that are not empty.
fn joined(values: &[Value], delimiter: &str) -> String {
    let Some(Value::Array(strings)) = values.first() else { return String::new() };
    let texts: Vec<String> = strings.iter().map(bt_runtime::text::value).filter(|text| !text.is_empty()).collect();
    texts.join(delimiter)
}

/// Tells on standard error what the script says there.
pub(super) fn tell(text: &str) {
    // Where standard error is gone, there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}
