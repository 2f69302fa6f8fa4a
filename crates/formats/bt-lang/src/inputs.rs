//! A script's inputs: its arguments `$1`, `$2`, ..., and the options that it reads with `getopt()`.

use std::collections::BTreeSet;

use crate::ast::visit::{VisitMut, walk_expr, walk_item};
use crate::ast::{Expr, ExprKind, Program};

/// Arguments and options that a script takes.
#[derive(Clone, Debug, Default)]
pub struct ScriptInputs {
    /// Options, each once, in the order in which it reads them.
    pub options: Vec<ScriptOption>,
    /// Numbers of the arguments that it reads.
    pub arguments: BTreeSet<u32>,
    /// True if it reads the number of arguments, so that it can do without them.
    pub reads_count: bool,
}

/// Option of a script.
#[derive(Clone, Debug)]
pub struct ScriptOption {
    name: String,
    /// `=N`, `=TEXT`, or empty for a switch.
    value: &'static str,
    /// Value if the option is not given.
    default: Option<String>,
    about: Option<String>,
}

impl ScriptInputs {
    /// Finds the arguments and options in a script's syntax.
    pub fn from_program(tree: &Program) -> Self {
        let mut inputs = Self::default();
        for item in &mut tree.clone().items {
            walk_item(&mut inputs, item);
        }
        inputs
    }

    /// Returns true if the script has an option of that name.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    /// Returns the arguments for the usage of a script with this text: `[$1] [$2]`. The parser has
    /// replaced those in names of probes by their values, so the text is searched for them.
    pub fn argument_words(&self, text: &str) -> String {
        let in_probes = (1..=9).rev().find(|it| text.contains(&format!(":${it}")));
        let last = self.arguments.last().copied().max(in_probes);
        let words = (1..=last.unwrap_or(0)).map(|it| format!("[${it}]"));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns a line for each option, for the help of the script.
    pub fn option_lines(&self) -> Vec<String> {
        let forms = self.options.iter().map(|option| option.form().len());
        let width = forms.max().unwrap_or_default();
        self.options
            .iter()
            .map(|option| option.line(width))
            .collect()
    }
}

impl VisitMut for ScriptInputs {
    fn expr(&mut self, expr: &mut Expr) {
        match &expr.kind {
            ExprKind::Positional(number) => {
                self.arguments.insert(*number);
            }
            ExprKind::ParamCount => self.reads_count = true,
            ExprKind::Call { func, args } if func.text == "getopt" => {
                let option = ScriptOption::parse(args);
                let option = option.filter(|option| !self.has_option(&option.name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_found_once() {
        let text = r#"begin { $a = getopt("slow", 5, "what is slow"); $b = getopt("slow", 7); $c = getopt("all");
            printf("%d %d", $2, $#) }"#;
        let parsed = crate::parse(text);
        let inputs = ScriptInputs::from_program(&parsed.program);
        assert_eq!(
            inputs.option_lines(),
            ["  --slow=N  what is slow (default 5)", "  --all"]
        );
        assert!(inputs.has_option("all") && inputs.reads_count);
        assert_eq!(inputs.arguments, BTreeSet::from([2]));
        assert_eq!(inputs.argument_words(text), "[$1] [$2]");
        assert_eq!(inputs.argument_words("uprobe:$1:$3* { }"), "[$1] [$2] [$3]");
        assert_eq!(ScriptInputs::default().argument_words("begin { }"), "");
    }
}
