//! Rules for finding live objects in the memory of a running program: the parts `[[object.alive]]`
//! and `[[object.record]]` of a spec.
//!
//! Expressions are stored as text with their lines; code that knows the program's types compiles
//! them.

use serde::Deserialize;
use toml::Spanned;

use crate::spec::ProbeArg;

/// One way to find the objects of a kind. A spec may have several, for different versions of the
/// program: the first one that fits the program's types is used.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct AliveSpec {
    /// Loops, from the outermost to the one over the objects: `$q : list(HEAD, struct TYPE, LINK)`,
    /// `tree(HEAD, struct TYPE, LEFT, RIGHT)` or `array(POINTER, COUNT)`.
    pub walk: Vec<LocatedText>,
    /// Conditions that a valid object meets.
    #[serde(default)]
    pub check: Vec<LocatedText>,
    /// Values read from an object. The one named like the spec's key identifies it.
    pub values: Vec<AliveValue>,
    /// Globals that can be found from an object, for programs without symbols: `NAME = EXPRESSION`.
    /// The value is the `tqe_prev` of an element of a list (`TAILQ`) whose head is, or is the start
    /// of, the global NAME.
    #[serde(default)]
    pub roots: Vec<AliveValue>,
}

/// A value read from an object: `name = expression` or `name: string = expression`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Spanned<String>")]
pub struct AliveValue {
    /// Name and type, as for a probe's argument.
    pub arg: ProbeArg,
    /// Expression of the value.
    pub expression: LocatedText,
}

/// A text in a spec, and its position.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(from = "Spanned<String>")]
pub struct LocatedText {
    /// Text.
    pub text: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Byte offset in the file.
    at: usize,
}

/// Records of a trace that report the beginning and the end of an object. The object of these
/// records, which has no type, is the key. They prove that an address belongs to the same object
/// between two times.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RecordPair {
    /// Tracepoint of the beginning.
    pub begin: String,
    /// Tracepoint of the end.
    pub end: String,
}

impl From<Spanned<String>> for LocatedText {
    fn from(spanned: Spanned<String>) -> Self {
        let at = spanned.span().start;
        Self {
            text: spanned.into_inner(),
            line: 0,
            at,
        }
    }
}

impl TryFrom<Spanned<String>> for AliveValue {
    type Error = String;

    fn try_from(spanned: Spanned<String>) -> Result<Self, String> {
        let LocatedText { text, at, .. } = LocatedText::from(spanned);
        // A name has no equal sign, so the first one separates it from its expression.
        let (name, expression) = text
            .split_once('=')
            .ok_or(format!("{text:?}: expected \"name = expression\""))?;
        let arg = ProbeArg::try_from(name.trim().to_owned())?;
        Ok(Self {
            arg,
            expression: LocatedText {
                text: expression.trim().to_owned(),
                line: 0,
                at,
            },
        })
    }
}

impl AliveSpec {
    /// Iterates over all texts to be compiled.
    fn texts(&mut self) -> impl Iterator<Item = &mut LocatedText> {
        let values = self
            .values
            .iter_mut()
            .chain(&mut self.roots)
            .map(|value| &mut value.expression);
        self.walk.iter_mut().chain(&mut self.check).chain(values)
    }

    /// Finds the lines of all texts in the file.
    pub(crate) fn locate(&mut self, file: &str) {
        for located in self.texts() {
            located.line = 1 + file
                .get(..located.at)
                .unwrap_or_default()
                .matches('\n')
                .count();
        }
    }

    /// Checks this part for objects with this key; returns a description of the first error.
    pub(crate) fn check(&self, key: &str) -> Result<(), String> {
        if self.walk.is_empty() {
            return Err("an alive part has no walk".to_owned());
        }
        let mut names: Vec<&str> = Vec::new();
        for AliveValue { arg, expression } in &self.values {
            if names.contains(&arg.name.as_str()) {
                return Err(format!(
                    "line {}: two values have the name {:?}",
                    expression.line, arg.name
                ));
            }
            if [crate::TSC, "watched"].contains(&arg.name.as_str()) {
                return Err(format!(
                    "line {}: a value cannot have the name {:?}",
                    expression.line, arg.name
                ));
            }
            names.push(&arg.name);
        }
        if let Some(root) = self
            .roots
            .iter()
            .find(|root| root.arg.string || root.arg.name == key)
        {
            return Err(format!(
                "line {}: a root is the address of a global, and not the key",
                root.expression.line
            ));
        }
        if names.contains(&key) {
            Ok(())
        } else {
            Err(format!(
                "an alive part has no value {key:?}, which is the key"
            ))
        }
    }
}
