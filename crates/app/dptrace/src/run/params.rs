//! A script's inputs from the command line: its arguments `$1`, `$2`, ..., and the options that it
//! reads with `getopt()`.

use std::collections::BTreeSet;

use bt_lang::ast::visit::{VisitMut, walk_expr, walk_item};
use bt_lang::ast::{Expr, ExprKind, Program};
use text::printable;

use super::source::ScriptText;

/// Arguments and options that a script takes.
#[derive(Default)]
pub(super) struct ScriptParams {
    options: Vec<ScriptOption>,
    /// Numbers of the arguments that it reads.
    arguments: BTreeSet<u32>,
    /// Set if it reads the number of arguments, so that it can do without them.
    counts: bool,
}

/// Option of a script.
struct ScriptOption {
    name: String,
    /// `=N`, `=TEXT`, or empty for a switch.
    value: &'static str,
    /// Value if the option is not given.
    default: Option<String>,
    about: Option<String>,
}

impl ScriptParams {
    /// Finds the arguments and options in a script's syntax.
    pub(super) fn from_program(tree: &Program) -> Self {
        let mut wanted = Self::default();
        for item in &mut tree.clone().items {
            walk_item(&mut wanted, item);
        }
        wanted
    }

    /// Returns whether the words ask for the script's help, and the script has no such option of
    /// its own.
    pub(super) fn is_asked_for(&self, params: &[String]) -> bool {
        params.iter().any(|param| param == "--help")
            && !self.options.iter().any(|option| option.name == "help")
    }

    /// Returns the script's help: its first comment, its usage, and its options.
    pub(super) fn help(&self, text: &ScriptText) -> String {
        let mut lines = text.first_comment();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let call = if text.is_file() {
            text::shell::word(text.called()).into_owned()
        } else {
            "-e PROGRAM".to_owned()
        };
        let arguments = self.arguments.last().map_or_else(String::new, |last| {
            // A script can name them in its comment.
            let named = lines
                .iter()
                .find_map(|line| line.strip_prefix("takes:"))
                .map(bundled_scripts::named);
            let numbers = || {
                (1..=*last)
                    .map(|number| format!("[${number}]"))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            format!(" {}", named.map_or_else(numbers, str::to_owned))
        });
        let options = if self.options.is_empty() {
            ""
        } else {
            " [-- OPTIONS OF THE SCRIPT]"
        };
        lines.push(format!(
            "usage: dptrace run [OPTIONS] {call}{arguments}{options}"
        ));
        lines.push(String::new());
        if self.options.is_empty() {
            lines.push("The script has no options of its own (getopt).".to_owned());
        } else {
            lines.push("Options of the script:".to_owned());
            let width = self
                .options
                .iter()
                .map(|option| option.form().len())
                .max()
                .unwrap_or_default();
            lines.extend(self.options.iter().map(|option| option.line(width)));
        }
        let text = lines.join("\n") + "\n";
        printable::lines(text.as_bytes()).into_owned()
    }

    /// Returns remarks on the words after the script's name: a missing argument, or one that the
    /// script never reads.
    pub(super) fn remarks(&self, text: &ScriptText) -> Vec<String> {
        let given: Vec<&String> = text
            .params
            .iter()
            .filter(|param| !param.starts_with("--"))
            .collect();
        let mut remarks = Vec::new();
        let most = self.arguments.last().copied().unwrap_or_default() as usize;
        // The bundled scripts can do without their arguments.
        if most > given.len() && !self.counts && text.bundled.is_none() {
            let missing = given.len() + 1;
            let (rest, are) = if missing == most {
                (String::new(), "is")
            } else {
                (format!(" to ${most}"), "are")
            };
            let place = if text.is_file() {
                "the script"
            } else {
                "-e PROGRAM"
            };
            let name = &text.name;
            remarks.push(format!(
                "{name} reads ${missing}{rest}, which {are} not given and so 0: put arguments \
                 after {place}"
            ));
        }
        // Arguments in names of probes were substituted already, so the text is searched too.
        // A script that reads the number of arguments can read more than it names; for bundled ones
        // it is known.
        let can_read_more = self.counts && text.bundled.is_none();
        let is_read = |number: usize| {
            can_read_more || number <= most || text.text.contains(&format!("${number}"))
        };
        let unread = given
            .iter()
            .enumerate()
            .filter(|(index, _)| !is_read(index + 1));
        let unread: Vec<String> = unread
            .map(|(_, word)| text::shell::word(word.as_str()).into_owned())
            .collect();
        if !unread.is_empty() {
            let known = match most {
                0 => "takes no arguments".to_owned(),
                1 => "takes one argument".to_owned(),
                most => format!("takes {most} arguments"),
            };
            let is_process = unread.iter().all(|word| word.parse::<u32>().is_ok());
            let process = if is_process {
                " (to name a process, use -p PID)"
            } else {
                ""
            };
            remarks.push(format!(
                "{} {known}; not used: {}{process}",
                text.name,
                unread.join(" ")
            ));
        }
        remarks
    }
}

impl VisitMut for ScriptParams {
    fn expr(&mut self, expr: &mut Expr) {
        match &expr.kind {
            ExprKind::Positional(number) => {
                self.arguments.insert(*number);
            }
            ExprKind::ParamCount => self.counts = true,
            ExprKind::Call { func, args } if func.text == "getopt" => {
                let options = &self.options;
                let known =
                    |option: &ScriptOption| options.iter().any(|known| known.name == option.name);
                let option = ScriptOption::parse(args).filter(|option| !known(option));
                self.options.extend(option);
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

impl ScriptOption {
    /// Parses `getopt("name", default, "what it is for")`.
    fn parse(args: &[Expr]) -> Option<Self> {
        let string = |arg: Option<&Expr>| match &arg?.kind {
            ExprKind::Str(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        let (value, default) = match args.get(1).map(|default| &default.kind) {
            Some(ExprKind::Int(number)) => ("=N", Some(number.text.clone())),
            Some(ExprKind::Str(_)) => {
                ("=TEXT", string(args.get(1)).map(|text| format!("{text:?}")))
            }
            _ => ("", None),
        };
        Some(Self {
            name: string(args.first())?,
            value,
            default,
            about: string(args.get(2)),
        })
    }

    fn form(&self) -> String {
        format!("--{}{}", self.name, self.value)
    }

    fn line(&self, width: usize) -> String {
        let default = self
            .default
            .as_ref()
            .map(|default| format!("(default {default})"));
        let about: Vec<&str> = self
            .about
            .iter()
            .chain(&default)
            .map(String::as_str)
            .collect();
        format!("  {:width$}  {}", self.form(), about.join(" "))
            .trim_end()
            .to_owned()
    }
}
