//! The loops of a walk: `$q : list(HEAD, struct TYPE, LINK)`, `tree(HEAD, struct TYPE, LEFT,
//! RIGHT)`, `array(POINTER, COUNT)`, `range(POINTER, COUNT)`.

use live_memory::Expression;
use typeinfo::{NameKind, TypeRef};

use super::{Compiler, parsed};

/// Loop over elements. Its variable is the address of each.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    /// Source text, for messages.
    pub(crate) text: String,
}

/// Data structure of a loop: determines the next element.
#[derive(Clone, Debug)]
pub(crate) enum LoopKind {
    /// Any of the lists of `sys/queue.h`. The first word of the head points to the first element,
    /// the first word of an element's link to the next one; 0 ends the list.
    List { head: Expression, link: u64 },
    /// Binary tree. The first word of its head points to the root.
    Tree {
        head: Expression,
        left: u64,
        right: u64,
    },
    /// Array of pointers; null pointers are skipped.
    Array {
        first: Expression,
        count: Expression,
    },
    /// Array of elements of this size.
    Range {
        first: Expression,
        count: Expression,
        size: u64,
    },
    /// Address given by the caller.
    Given,
}

impl Compiler<'_, '_> {
    /// Compiles a loop. If the addresses are given, only the type of its variable counts.
    pub(super) fn step(&mut self, text: &str, is_given: bool) -> Result<Loop, String> {
        let shape = "expected \"$name : list(HEAD, struct TYPE, LINK)\", tree(HEAD, struct TYPE, LEFT, RIGHT), \
                     array(POINTER, COUNT) or range(POINTER, COUNT)";
        let (name, rest) = text.split_once(':').ok_or(shape)?;
        let name = name.trim().strip_prefix('$').ok_or(shape)?;
        let (function, rest) = rest.trim().split_once('(').ok_or(shape)?;
        let args = split(rest.strip_suffix(')').ok_or(shape)?);
        let args: Vec<&str> = args.iter().map(|arg| arg.trim()).collect();
        let (element, kind) = match (function.trim(), &args[..]) {
            ("list", [head, of, link]) => {
                let element = self.record(of)?;
                let link = self.offset(element, link)?;
                (
                    element,
                    if is_given {
                        LoopKind::Given
                    } else {
                        LoopKind::List {
                            head: self.head(head)?,
                            link,
                        }
                    },
                )
            }
            ("tree", [head, of, left, right]) => {
                let element = self.record(of)?;
                let (left, right) = (self.offset(element, left)?, self.offset(element, right)?);
                let tree = |head| LoopKind::Tree { head, left, right };
                (
                    element,
                    if is_given {
                        LoopKind::Given
                    } else {
                        tree(self.head(head)?)
                    },
                )
            }
            ("array", [first, count]) if !is_given => self.array(first, count)?,
            ("range", [first, count]) if !is_given => self.range(first, count)?,
            _ => return Err(shape.to_owned()),
        };
        self.scope.add(name, element);
        Ok(Loop {
            kind,
            text: text.to_owned(),
        })
    }

    fn array(&self, first: &str, count: &str) -> Result<(TypeRef, LoopKind), String> {
        let wrong = || format!("{first}: expected a pointer to pointers");
        let compiled = self.value(first)?;
        let element = compiled
            .target()
            .and_then(|pointer| self.evaluator.target_of(pointer))
            .ok_or_else(wrong)?;
        Ok((
            element,
            LoopKind::Array {
                first: compiled,
                count: self.value(count)?,
            },
        ))
    }

    fn range(&self, first: &str, count: &str) -> Result<(TypeRef, LoopKind), String> {
        let compiled = self.value(first)?;
        let element = compiled
            .target()
            .ok_or_else(|| format!("{first}: expected a pointer"))?;
        let size = self
            .evaluator
            .size_of(element)
            .map_err(|error| error.to_string())?;
        Ok((
            element,
            LoopKind::Range {
                first: compiled,
                count: self.value(count)?,
                size,
            },
        ))
    }

    /// Compiles the address of a list's head: of a member, or a number.
    fn head(&self, text: &str) -> Result<Expression, String> {
        self.evaluator
            .compile_address(&parsed(text)?, &self.scope)
            .map_err(|error| error.to_string())
    }

    fn record(&self, text: &str) -> Result<TypeRef, String> {
        let name = text.strip_prefix("struct ").map(str::trim);
        let name = name.ok_or_else(|| format!("{text}: expected struct and a name"))?;
        self.evaluator
            .named_type(NameKind::Struct, name)
            .map_err(|error| error.to_string())
    }

    fn offset(&self, of: TypeRef, path: &str) -> Result<u64, String> {
        self.evaluator
            .offset_of(of, path)
            .map_err(|error| error.to_string())
    }
}

/// Splits arguments at commas that are not within parentheses or strings.
fn split(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut args) = (0_u32, false, vec![String::new()]);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                args.push(String::new());
                continue;
            }
            _ => {}
        }
        args.last_mut().into_iter().for_each(|arg| arg.push(c));
    }
    args
}
