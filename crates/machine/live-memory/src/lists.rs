//! Lists and trees in memory: those of BSD's `<sys/queue.h>` and `<sys/tree.h>` (queue(3), tree(3)), circular lists whose nodes
//! are members of their elements, and chains of pointers.
//!
//! A list that changes during a walk may lead in circles, and a hostile one may have no end. So
//! each element is visited once, and their number is bounded.

use std::collections::HashSet;

use bt_lang::Span;
use typeinfo::{TypeKind, TypeRef};

use crate::eval::{EvalError, Evaluator, Place, Value};

/// Names of a head's first pointer and of a link's next one, by macro. `CIRCLEQ` ends at its head,
/// the others at NULL.
const QUEUES: [(&str, &str); 6] = [
    ("tqh_first", "tqe_next"),
    ("stqh_first", "stqe_next"),
    ("sqh_first", "sqe_next"),
    ("lh_first", "le_next"),
    ("slh_first", "sle_next"),
    ("cqh_first", "cqe_next"),
];
/// Names of a tree's root and of a node's children, by macro.
const TREES: [(&str, &str, &str); 2] = [
    ("rbh_root", "rbe_left", "rbe_right"),
    ("sph_root", "spe_left", "spe_right"),
];

/// Connection between the elements of a list.
#[derive(Debug)]
enum Shape {
    /// Each element has a pointer to the next one, `next` bytes behind its beginning.
    Chain { next: u64, end: u64 },
    /// The pointer leads to a node within the next element, `node` bytes behind the element's
    /// beginning.
    Nodes { node: u64, next: u64, end: u64 },
    /// Each element has two children.
    Tree {
        left: u64,
        right: u64,
        waiting: Vec<u64>,
    },
}

/// Iterator over the elements. It ends after an error.
#[derive(Debug)]
pub struct ListWalk<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    /// Address of the next element, or of a node of it; 0 at the end.
    at: u64,
    element: TypeRef,
    shape: Shape,
    seen: HashSet<u64>,
    is_cut: bool,
    span: Span,
}

impl<'a> Evaluator<'a> {
    /// Walks the elements of a list, as places. `head` is the place of a head that one of the
    /// macros made, of a pointer to one, or of a pointer to the first element. `link` is the member
    /// of the elements that connects them (`link`, or a path `a.link`).
    pub fn list(&self, head: Place, link: &str) -> Result<ListWalk<'_, 'a>, EvalError> {
        let span = Span::default();
        let value = self.load(head, span)?;
        self.walk(&value, None, link, span, span)
    }

    /// Walks the list of a head's value.
    pub(crate) fn walk(
        &self,
        value: &Value,
        element: Option<TypeRef>,
        link: &str,
        span: Span,
        link_span: Span,
    ) -> Result<ListWalk<'_, 'a>, EvalError> {
        let place = match value {
            Value::Place(place) => *place,
            other => self
                .pointed(other, span)?
                .ok_or_else(|| not_a_list(self, other, span))?,
        };
        let (at, element, shape) = match element {
            Some(element) => self.nodes(place, element, link, span, link_span)?,
            None => match self.queue(place, link, span, link_span)? {
                Some(found) => found,
                None if matches!(value, Value::Place(_)) => {
                    return Err(not_a_list(self, value, span));
                }
                // A pointer to the first element.
                None => {
                    let next = self.next_offset(place.ty, link, None, link_span)?;
                    (place.address, place.ty, Shape::Chain { next, end: 0 })
                }
            },
        };
        Ok(ListWalk {
            evaluator: self,
            at,
            element,
            shape,
            seen: HashSet::new(),
            is_cut: false,
            span,
        })
    }

    /// Returns the list of a head that one of the macros made; `None` for another type.
    fn queue(
        &self,
        head: Place,
        link: &str,
        span: Span,
        link_span: Span,
    ) -> Result<Option<(u64, TypeRef, Shape)>, EvalError> {
        if !matches!(
            self.kind(head.ty, span)?,
            TypeKind::Struct { .. } | TypeKind::Union { .. }
        ) {
            return Ok(None);
        }
        for (first, next) in QUEUES {
            if self.types.has_member(head.ty, first) {
                let (at, element) = self.follow(head, first, span)?;
                let next = self.next_offset(element, link, Some(next), link_span)?;
                let end = if first == "cqh_first" {
                    head.address
                } else {
                    0
                };
                return Ok(Some((at, element, Shape::Chain { next, end })));
            }
        }
        for (root, left, right) in TREES {
            if self.types.has_member(head.ty, root) {
                let (at, element) = self.follow(head, root, span)?;
                let left = self.next_offset(element, link, Some(left), link_span)?;
                let right = self.next_offset(element, link, Some(right), link_span)?;
                return Ok(Some((
                    at,
                    element,
                    Shape::Tree {
                        left,
                        right,
                        waiting: Vec::new(),
                    },
                )));
            }
        }
        Ok(None)
    }

    /// Returns a circular list: its head has `next`, or the head's first member does.
    fn nodes(
        &self,
        head: Place,
        element: TypeRef,
        link: &str,
        span: Span,
        link_span: Span,
    ) -> Result<(u64, TypeRef, Shape), EvalError> {
        let typed = |error| EvalError::new(link_span, error);
        let node = self.types.store().path(element, link).map_err(typed)?;
        let next = self
            .types
            .member(node.ty, "next")
            .map_err(typed)?
            .byte_offset();
        let mut sentinel = head;
        if !self.types.has_member(head.ty, "next") {
            let inner = self
                .types
                .store()
                .members(head.ty)
                .ok()
                .and_then(|members| members.first().map(|it| it.ty));
            let inner = inner.filter(|ty| self.types.has_member(*ty, "next"));
            let hint = "a circular list has a head with a member `next`";
            let wrong = || {
                EvalError::other(
                    span,
                    format!("{} is not the head of a list", self.display(head.ty)),
                )
            };
            sentinel.ty = inner.ok_or_else(|| wrong().with_hint(hint))?;
        }
        let (at, _) = self.follow(sentinel, "next", span)?;
        let shape = Shape::Nodes {
            node: node.byte_offset(),
            next,
            end: sentinel.address,
        };
        Ok((at, element, shape))
    }

    /// Returns the address and the type that a pointer leads to, which is a member.
    fn follow(&self, record: Place, member: &str, span: Span) -> Result<(u64, TypeRef), EvalError> {
        let field = self
            .types
            .member(record.ty, member)
            .map_err(|error| EvalError::new(span, error))?;
        let value = self.load(record.field(field), span)?;
        let place = self.pointed(&value, span)?;
        let place = place.ok_or_else(|| {
            EvalError::other(span, format!("the member {member} is not a pointer"))
        })?;
        Ok((place.address, place.ty))
    }

    /// Returns the byte offset of an element's pointer to the next one: the link itself, or this
    /// member of it.
    fn next_offset(
        &self,
        element: TypeRef,
        link: &str,
        next: Option<&str>,
        span: Span,
    ) -> Result<u64, EvalError> {
        let at = |error| EvalError::new(span, error);
        let field = self.types.store().path(element, link).map_err(at)?;
        let Some(next) = next else {
            if matches!(self.kind(field.ty, span)?, TypeKind::Pointer { .. }) {
                return Ok(field.byte_offset());
            }
            // A walk from an element on: its link shows the kind of list.
            let known = QUEUES
                .iter()
                .find(|(_, next)| self.types.has_member(field.ty, next));
            let wrong = || {
                EvalError::other(
                    span,
                    format!("{} is not a link of a list", self.display(field.ty)),
                )
            };
            let inner = self
                .types
                .member(field.ty, known.ok_or_else(wrong)?.1)
                .map_err(at)?;
            return Ok(field.byte_offset() + inner.byte_offset());
        };
        let inner = self.types.member(field.ty, next).map_err(at)?;
        Ok(field.byte_offset() + inner.byte_offset())
    }
}

fn not_a_list(evaluator: &Evaluator<'_>, value: &Value, span: Span) -> EvalError {
    let heads: Vec<&str> = QUEUES
        .iter()
        .map(|row| row.0)
        .chain(TREES.iter().map(|row| row.0))
        .collect();
    EvalError::other(
        span,
        format!("{} is not the head of a list", evaluator.describe(value)),
    )
    .with_hint(format!("a head has a member {}", heads.join(", ")))
    .with_hint(
        "list(HEAD, typeof(struct x), LINK) walks circular lists, list(POINTER, NEXT) chains of \
         pointers",
    )
}

impl ListWalk<'_, '_> {
    /// Returns the type of the elements.
    pub fn element(&self) -> TypeRef {
        self.element
    }

    /// Returns true if the walk ended at the limit, and not at the list's end.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn pointer(&self, at: u64) -> Result<u64, EvalError> {
        let mut bytes = [0; 8];
        self.evaluator
            .read(at, &mut bytes, self.element, self.span)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Notes an element; returns false if the walk ends here.
    fn visit(&mut self, address: u64) -> Result<bool, EvalError> {
        let most = self.evaluator.max_elements();
        if self.seen.len() >= most {
            self.is_cut = true;
            self.evaluator.remark(format!(
                "a list goes on after {most} elements: the rest is left out"
            ));
            return Ok(false);
        }
        if !self.seen.insert(address) {
            let message = format!(
                "the list leads back to {address:#x} after {} elements",
                self.seen.len()
            );
            return Err(EvalError::other(self.span, message).with_hint(
                "it may have changed meanwhile: try again, and see whether LINK is the right \
                 member",
            ));
        }
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Place>, EvalError> {
        let address = match &mut self.shape {
            Shape::Chain { end, .. } | Shape::Nodes { end, .. }
                if self.at == 0 || self.at == *end =>
            {
                return Ok(None);
            }
            Shape::Chain { .. } => self.at,
            Shape::Nodes { node, .. } => self.at.wrapping_sub(*node),
            Shape::Tree { left, waiting, .. } => {
                // Down to the left; the waiting elements bound the walk.
                let left = *left;
                let mut waiting = std::mem::take(waiting);
                while self.at != 0 {
                    if !self.visit(self.at)? {
                        break;
                    }
                    waiting.push(self.at);
                    self.at = self.pointer(self.at.wrapping_add(left))?;
                }
                let Some(address) = waiting.pop() else {
                    return Ok(None);
                };
                let Shape::Tree {
                    right,
                    waiting: kept,
                    ..
                } = &mut self.shape
                else {
                    return Ok(None);
                };
                *kept = waiting;
                let right = *right;
                self.at = self.pointer(address.wrapping_add(right))?;
                return Ok(Some(Place::new(address, self.element)));
            }
        };
        if !self.visit(address)? {
            return Ok(None);
        }
        self.at = match self.shape {
            Shape::Chain { next, .. } => self.pointer(address.wrapping_add(next))?,
            Shape::Nodes { next, .. } => self.pointer(self.at.wrapping_add(next))?,
            Shape::Tree { .. } => 0,
        };
        Ok(Some(Place::new(address, self.element)))
    }
}

impl Iterator for ListWalk<'_, '_> {
    type Item = Result<Place, EvalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            // The walk does not begin again.
            self.at = 0;
            self.shape = Shape::Chain { next: 0, end: 0 };
        }
        step.transpose()
    }
}
