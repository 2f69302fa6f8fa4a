//! Walks lists and trees, and reads the objects in them.

use std::collections::{BTreeMap, HashSet};

use live_memory::{Cause, EvalError, Expression, Memory, MemoryError, Scalar as Value};

use crate::alive::compile::{CompiledSpec, LoopKind};

/// Limit on the elements of one reading, of all lists together. It ends the reading of a list that
/// is longer, or endless.
pub const MAX_ELEMENTS: u64 = 1 << 18;

/// Result of one reading of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    objects: BTreeMap<Value, Vec<Value>>,
    counts: Counts,
}

/// Counts of what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that failed a condition.
    pub rejected: u64,
    /// First condition that failed.
    pub rejected_by: Option<String>,
    /// Objects and list elements that could not be read.
    pub unreadable: u64,
    /// Objects that changed while they were read.
    pub torn: u64,
    /// Lists not read to their ends: cyclic ones, and those that are too long.
    pub cut: Vec<String>,
    /// Reason why nothing can be read at all, if so.
    pub failed: Option<Cause>,
}

/// Object that was alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliveObject {
    /// Values, in the order of [`CompiledSpec::names`].
    pub values: Vec<Value>,
}

/// Result on which two readings agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkResult {
    /// Objects, sorted by key.
    pub objects: Vec<AliveObject>,
    /// Counts of what was left out.
    pub counts: Counts,
}

/// Compares two consecutive readings. An object that is equal in both had these values at the
/// moment between them; others count as torn.
pub fn agree(first: &Reading, second: Reading) -> WalkResult {
    let mut counts = second.counts;
    let mut objects = Vec::new();
    for (key, values) in second.objects {
        if first.objects.get(&key) == Some(&values) {
            objects.push(AliveObject { values });
        } else {
            counts.torn += 1;
        }
    }
    WalkResult { objects, counts }
}

impl Reading {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl CompiledSpec {
    /// Reads the objects once.
    pub fn read(&self, memory: &dyn Memory) -> Reading {
        let mut walk = Walk::new(self, memory);
        walk.enter(0);
        walk.reading
    }

    /// Returns true if there is any such object; stops at the first one.
    pub fn finds_any(&self, memory: &dyn Memory) -> bool {
        let mut walk = Walk {
            enough: 1,
            ..Walk::new(self, memory)
        };
        walk.enter(0);
        !walk.reading.is_empty()
    }

    /// Reads the objects at these addresses, as far as they meet the conditions: for
    /// [`CompiledSpec::compile_pointers`].
    pub fn read_at(&self, addresses: &[u64], memory: &dyn Memory) -> Reading {
        let mut walk = Walk::new(self, memory);
        for &address in addresses.iter().take(MAX_ELEMENTS as usize) {
            walk.vars = vec![address];
            walk.object();
        }
        walk.reading
    }
}

/// Reason for a missing value: its memory can't be read, or a text does not end within its array.
/// Holds the cause if nothing else can be read either.
struct Fault(Option<Cause>);

impl From<EvalError> for Fault {
    fn from(error: EvalError) -> Self {
        Self(
            error
                .unreadable()
                .map(|unreadable| unreadable.cause)
                .filter(|cause| cause.is_final()),
        )
    }
}

impl From<MemoryError> for Fault {
    fn from(unreadable: MemoryError) -> Self {
        Self(Some(unreadable.cause).filter(|cause| cause.is_final()))
    }
}

struct Walk<'w> {
    of: &'w CompiledSpec,
    memory: &'w dyn Memory,
    reading: Reading,
    vars: Vec<u64>,
    left: u64,
    /// Number of objects after which the walk stops.
    enough: usize,
}

impl<'w> Walk<'w> {
    fn new(of: &'w CompiledSpec, memory: &'w dyn Memory) -> Self {
        let reading = Reading::default();
        Self {
            of,
            memory,
            reading,
            vars: Vec::new(),
            left: MAX_ELEMENTS,
            enough: usize::MAX,
        }
    }

    /// Runs the loop at this depth, and those within it.
    fn enter(&mut self, depth: usize) {
        let compiled = self.of;
        let Some(step) = compiled.loops.get(depth) else {
            return self.object();
        };
        let number = |expression: &Expression| {
            expression
                .number(&self.vars, self.memory)
                .map_err(Fault::from)
        };
        let result = match &step.kind {
            LoopKind::List { head, link } => {
                number(head).and_then(|head| self.list(head, *link, depth))
            }
            LoopKind::Tree { head, left, right } => {
                number(head).and_then(|head| self.tree(head, [*left, *right], depth))
            }
            LoopKind::Array { first, count } => {
                let (first, count) = (number(first), number(count));
                first.and_then(|first| self.array(first, count?, depth))
            }
            LoopKind::Range { first, count, size } => {
                let (first, count) = (number(first), number(count));
                first.and_then(|first| count.map(|count| self.range(first, count, *size, depth)))
            }
            LoopKind::Given => Ok(()),
        };
        if let Err(fault) = result {
            self.fault(fault);
        }
    }

    fn list(&mut self, head: u64, link: u64, depth: usize) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        let mut at = self.word(head)?;
        while at != 0 && self.element(at, depth, &mut seen) {
            at = self.word(at.wrapping_add(link))?;
        }
        Ok(())
    }

    fn tree(&mut self, head: u64, sides: [u64; 2], depth: usize) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        let mut open = vec![self.word(head)?];
        while let Some(at) = open.pop() {
            if at == 0 {
                continue;
            }
            if !self.element(at, depth, &mut seen) {
                break;
            }
            for side in sides {
                open.push(self.word(at.wrapping_add(side))?);
            }
        }
        Ok(())
    }

    fn array(&mut self, first: u64, count: u64, depth: usize) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        for index in 0..count {
            let at = self.word(first.wrapping_add(index.wrapping_mul(8)))?;
            if at == 0 {
                // Gaps are charged, too: an array of a million gaps is not worth reading to its
                // end.
                if !self.charge(depth) {
                    break;
                }
            } else if !self.element(at, depth, &mut seen) {
                break;
            }
        }
        Ok(())
    }

    fn range(&mut self, first: u64, count: u64, size: u64, depth: usize) {
        let mut seen = HashSet::new();
        for index in 0..if first == 0 { 0 } else { count } {
            if !self.element(
                first.wrapping_add(index.wrapping_mul(size)),
                depth,
                &mut seen,
            ) {
                break;
            }
        }
    }

    /// Enters an element. Returns false if the loop must end.
    fn element(&mut self, at: u64, depth: usize, seen: &mut HashSet<u64>) -> bool {
        if !seen.insert(at) {
            self.cut(depth, "leads back to itself");
            return false;
        }
        if !self.charge(depth) {
            return false;
        }
        self.vars.truncate(depth);
        self.vars.push(at);
        self.enter(depth + 1);
        self.vars.truncate(depth);
        self.reading.counts.failed.is_none() && self.reading.len() < self.enough
    }

    /// Charges an element to the budget. Returns false if the budget is used up.
    fn charge(&mut self, depth: usize) -> bool {
        if self.left == 0 {
            self.cut(depth, "was not read to its end: it has too many elements");
            return false;
        }
        self.left -= 1;
        true
    }

    fn cut(&mut self, depth: usize, why: &str) {
        let text = format!("{} {why}", self.of.loops[depth].text);
        if !self.reading.counts.cut.contains(&text) {
            self.reading.counts.cut.push(text);
        }
    }

    /// Reads the object at the current variables.
    fn object(&mut self) {
        let compiled = self.of;
        for (check, text) in &compiled.checks {
            match check.number(&self.vars, self.memory) {
                Ok(0) => {
                    self.reading.counts.rejected += 1;
                    self.reading
                        .counts
                        .rejected_by
                        .get_or_insert_with(|| text.text.clone());
                    return;
                }
                Ok(_) => {}
                Err(error) => return self.fault(error.into()),
            }
        }
        let values = compiled
            .values
            .iter()
            .map(|code| code.value(&self.vars, self.memory));
        match values.collect::<Result<Vec<_>, _>>() {
            Ok(values) => drop(
                self.reading
                    .objects
                    .insert(values[compiled.key].clone(), values),
            ),
            Err(error) => self.fault(error.into()),
        }
    }

    fn fault(&mut self, Fault(cause): Fault) {
        self.reading.counts.unreadable += 1;
        if cause.is_some() {
            self.reading.counts.failed = cause;
        }
    }

    fn word(&self, at: u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.memory.read(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
