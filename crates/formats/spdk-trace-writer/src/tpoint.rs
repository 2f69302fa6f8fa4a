//! Tracepoint descriptors: a test's declaration, and its bytes in the file.

use crate::era::EraSpec;

/// Size of a descriptor's name, in bytes; a name that fills it has no NUL.
const NAME_SIZE: usize = 24;
/// Size of an argument's name, in bytes; a name that fills it has no NUL.
const ARG_NAME_SIZE: usize = 14;

/// Type of an argument, with SPDK's number for it (`SPDK_TRACE_ARG_TYPE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// An integer of 4 or 8 bytes.
    Int = 0,
    /// A pointer of 4 or 8 bytes.
    Ptr = 1,
    /// A string with its NUL.
    Str = 2,
}

/// Declaration of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgSpec {
    /// Name, at most 14 bytes.
    pub name: String,
    /// Type of the argument.
    pub kind: ArgKind,
    /// Size in a record, in bytes.
    pub size: u8,
}

/// "Argument `arg_index` is the id of an object of this type."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// Type of the related object.
    pub object_type: u8,
    /// Index of the argument that holds its id.
    pub arg_index: u8,
}

/// A tracepoint descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tpoint {
    /// `group * 64 + index`.
    pub id: u16,
    /// Name, at most 24 bytes.
    pub name: String,
    /// Type of the owner, 0 for none.
    pub owner_type: u8,
    /// Type of the object, 0 for none.
    pub object_type: u8,
    /// True if its records begin a new object.
    pub new_object: bool,
    /// Arguments, in order.
    pub args: Vec<ArgSpec>,
    /// Relations, in order.
    pub relations: Vec<Relation>,
}

impl Tpoint {
    /// Creates a tracepoint without owner, object or arguments.
    ///
    /// # Panics
    /// If the name is empty (SPDK's mark of an unused descriptor) or longer than 24 bytes.
    #[must_use]
    pub fn new(id: u16, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(
            !name.is_empty() && name.len() <= NAME_SIZE,
            "tracepoint name {name:?} must have 1 to 24 bytes"
        );
        Self {
            id,
            name,
            owner_type: 0,
            object_type: 0,
            new_object: false,
            args: Vec::new(),
            relations: Vec::new(),
        }
    }

    /// Sets the type of its owners.
    #[must_use]
    pub fn owner_type(mut self, owner_type: u8) -> Self {
        self.owner_type = owner_type;
        self
    }

    /// Sets the type of its objects.
    #[must_use]
    pub fn object_type(mut self, object_type: u8) -> Self {
        self.object_type = object_type;
        self
    }

    /// Makes each of its records begin a new object.
    #[must_use]
    pub fn new_object(mut self) -> Self {
        self.new_object = true;
        self
    }

    /// Adds a pointer of 8 bytes.
    #[must_use]
    pub fn ptr(self, name: &str) -> Self {
        self.arg(name, ArgKind::Ptr, 8)
    }

    /// Adds an integer of `size` bytes.
    #[must_use]
    pub fn int(self, name: &str, size: u8) -> Self {
        self.arg(name, ArgKind::Int, size)
    }

    /// Adds a string that takes `size` bytes, its NUL included.
    #[must_use]
    pub fn str(self, name: &str, size: u8) -> Self {
        self.arg(name, ArgKind::Str, size)
    }

    /// Adds an argument of any form that SPDK's own registration accepts.
    ///
    /// # Panics
    /// If the name is empty or longer than 14 bytes, an integer or pointer does not have 4 or 8
    /// bytes, or a string has none.
    #[must_use]
    pub fn arg(mut self, name: &str, kind: ArgKind, size: u8) -> Self {
        assert!(
            !name.is_empty() && name.len() <= ARG_NAME_SIZE,
            "argument name {name:?} must have 1 to 14 bytes"
        );
        let fits = if kind == ArgKind::Str {
            size > 0
        } else {
            size == 4 || size == 8
        };
        assert!(
            fits,
            "argument {name:?} can't be a {kind:?} of {size} bytes"
        );
        self.args.push(ArgSpec {
            name: name.to_owned(),
            kind,
            size,
        });
        self
    }

    /// Declares that argument `arg_index` is the id of an object of this type.
    #[must_use]
    pub fn relates(mut self, object_type: u8, arg_index: u8) -> Self {
        self.relations.push(Relation {
            object_type,
            arg_index,
        });
        self
    }

    /// Returns the number of slots of a record.
    pub fn slots(&self) -> usize {
        1 + self
            .args_size()
            .saturating_sub(crate::era::INLINE_ARGS)
            .div_ceil(crate::era::CONTINUATION_DATA)
    }

    /// Returns the total size of its arguments, in bytes.
    pub fn args_size(&self) -> usize {
        self.args.iter().map(|arg| usize::from(arg.size)).sum()
    }

    /// Returns whether an era's descriptor has room for it.
    pub fn fits(&self, spec: &EraSpec) -> bool {
        self.args.len() <= spec.max_args && self.relations.len() <= spec.max_relations
    }

    /// Writes the descriptor into its place in the file.
    pub(crate) fn encode(&self, spec: &EraSpec, place: &mut [u8]) {
        place[..self.name.len()].copy_from_slice(self.name.as_bytes());
        place[24..26].copy_from_slice(&self.id.to_le_bytes());
        let numbers = [
            self.owner_type,
            self.object_type,
            u8::from(self.new_object),
            self.args.len() as u8,
        ];
        place[26..30].copy_from_slice(&numbers);
        for (arg, place) in self.args.iter().zip(place[30..].chunks_exact_mut(16)) {
            place[..arg.name.len()].copy_from_slice(arg.name.as_bytes());
            place[14..].copy_from_slice(&[arg.kind as u8, arg.size]);
        }
        let relations = &mut place[30 + 16 * spec.max_args..];
        for (relation, place) in self.relations.iter().zip(relations.chunks_exact_mut(2)) {
            place.copy_from_slice(&[relation.object_type, relation.arg_index]);
        }
    }
}
