//! Stacks with their weights.

use std::collections::HashMap;
use std::fmt::Write as _;

use ordering::Order as _;
use page::flame::{FlameGraph, FlameNode, Unit};

use crate::Form;
use crate::{pprof, speedscope};

/// Limit on the frames of a stack: the inner ones beyond it are one frame.
const MAX_FRAMES: usize = 1024;
/// Name of the frame in place of those beyond the limit.
const MORE_FRAMES: &str = "(more frames)";

/// Stacks with their weights. Equal stacks are one.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// Names of all frames, each once.
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Weights by stack, whose frames are indices of `names`, outermost first.
    stacks: HashMap<Vec<u32>, u64>,
}

impl Profile {
    /// Creates an empty profile.
    pub fn new(title: &str, unit: Unit) -> Self {
        Self {
            title: title.to_owned(),
            unit,
            names: Vec::new(),
            numbers: HashMap::new(),
            stacks: HashMap::new(),
        }
    }

    /// Adds a stack, outermost frame first, with its weight.
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, weight: u64) {
        let mut frames = frames.into_iter();
        let outer = frames.by_ref().take(MAX_FRAMES);
        let mut stack: Vec<u32> = outer.map(|name| self.number(name)).collect();
        if frames.next().is_some() {
            stack.push(self.number(MORE_FRAMES));
        }
        if stack.is_empty() || weight == 0 {
            return;
        }
        let sum = self.stacks.entry(stack).or_default();
        *sum = sum.saturating_add(weight);
    }

    /// Adds a line of folded text, `outer;inner weight`. Returns false if it is no such line.
    pub fn add_folded(&mut self, line: &str) -> bool {
        let Some((stack, weight)) = line.rsplit_once(' ') else {
            return false;
        };
        let Ok(weight) = weight.parse() else {
            return false;
        };
        if !stack.contains(';') {
            return false;
        }
        self.add(stack.split(';').filter(|name| !name.is_empty()), weight);
        true
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Returns true if it has no stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Returns the stacks with their weights, greatest weight first.
    pub(crate) fn stacks(&self) -> Vec<(&[u32], u64)> {
        let mut stacks: Vec<_> = self
            .stacks
            .iter()
            .map(|(stack, weight)| (stack.as_slice(), *weight))
            .collect();
        stacks.order_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        stacks
    }

    /// Formats the profile.
    ///
    /// # Errors
    ///
    /// Fails if the compression does, which would be a mistake of ours.
    pub fn bytes(&self, form: Form) -> std::io::Result<Vec<u8>> {
        Ok(match form {
            Form::Folded => self.folded().into_bytes(),
            Form::Pprof => pprof::bytes(self)?,
            Form::Speedscope => speedscope::text(self).into_bytes(),
            Form::Flame => page::flame::page(&self.flame_graph()).into_bytes(),
        })
    }

    /// Formats the stacks as `outer;inner weight`, greatest weight first. A `;` or a line end in a
    /// name would end the name, so it becomes `:`.
    fn folded(&self) -> String {
        let mut text = String::new();
        for (stack, weight) in self.stacks() {
            let names: Vec<String> = stack
                .iter()
                .map(|&frame| self.names[frame as usize].replace([';', '\n', '\r'], ":"))
                .collect();
            // SANITY: writing to a string doesn't fail.
            let _ = writeln!(text, "{} {weight}", names.join(";"));
        }
        text
    }

    fn flame_graph(&self) -> FlameGraph {
        let mut root = FlameNode {
            name: "all".to_owned(),
            ..FlameNode::default()
        };
        let mut stacks = self.stacks();
        // Equal beginnings follow one another, so a node's parent is the last one of its level.
        stacks.order_by(|a, b| a.0.cmp(b.0));
        for (stack, weight) in stacks {
            let mut node = &mut root;
            node.weight = node.weight.saturating_add(weight);
            for &frame in stack {
                let name = &self.names[frame as usize];
                if node.children.last().is_none_or(|last| last.name != *name) {
                    node.children.push(FlameNode {
                        name: name.clone(),
                        ..FlameNode::default()
                    });
                }
                let Some(last) = node.children.last_mut() else {
                    break;
                };
                node = last;
                node.weight = node.weight.saturating_add(weight);
            }
        }
        FlameGraph {
            title: self.title.clone(),
            unit: self.unit,
            root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let mut profile = Profile::new("cpu", Unit::Count);
        assert!(profile.add_folded("postgres;main;exec 7"));
        assert!(profile.add_folded("postgres;main;parse 2"));
        profile.add(["postgres", "main", "exec"], 3);
        profile.add(["idle; or \n not"], 1);
        profile
    }

    #[test]
    fn equal_stacks_are_one() {
        let text = profile().bytes(Form::Folded).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "postgres;main;exec 10\npostgres;main;parse 2\nidle: or : not 1\n"
        );
    }

    #[test]
    fn a_deep_stack_is_cut() {
        let mut profile = Profile::new("", Unit::Count);
        assert!(profile.add_folded(&format!("{} 3", vec!["f"; 100_000].join(";"))));
        let text = String::from_utf8(profile.bytes(Form::Folded).unwrap()).unwrap();
        assert_eq!(text.matches(';').count(), MAX_FRAMES);
        assert!(text.ends_with(";(more frames) 3\n"));
        assert!(profile.bytes(Form::Flame).is_ok());
    }

    #[test]
    fn lines_that_are_no_stacks_are_refused() {
        let mut profile = Profile::new("", Unit::Count);
        for line in ["", "hello", "hello 7", "a;b", "a;b x", "@x: 7"] {
            assert!(!profile.add_folded(line), "{line}");
        }
        assert!(profile.is_empty());
    }

    #[test]
    fn a_node_has_the_weight_of_all_stacks_through_it() {
        let FlameGraph { root, .. } = profile().flame_graph();
        let of = |node: &FlameNode| (node.name.clone(), node.weight);
        assert_eq!(of(&root), ("all".to_owned(), 13));
        let postgres = root.children.iter().find(|it| it.name == "postgres");
        let main = &postgres.unwrap().children[0];
        assert_eq!(of(main), ("main".to_owned(), 12));
        assert_eq!(main.children.len(), 2);
    }
}
