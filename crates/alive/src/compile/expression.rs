//! Expressions of the script language over memory: the part of it that reads members, compares and calls `str`, `strncmp` and
//! `uaddr`.

use std::collections::HashMap;

use bt_lang::ast::{Expr, ExprKind, ItemKind, RecordKind, StmtKind, Type, TypeKind as AstKind, UnaryOp};
use typeinfo::{NameKind, TypeKind, TypeRef};

use super::Program;
use crate::code::Code;

/// Compiles the expressions of one way to find objects.
pub(super) struct Compiler<'p> {
    pub(super) program: &'p Program<'p>,
    /// The loops' variables, and what each points to.
    pub(super) vars: Vec<(String, TypeRef)>,
    /// Types that were looked up already.
    pub(super) records: HashMap<String, TypeRef>,
}

/// An expression and what is known of its type.
#[derive(Clone, Debug)]
pub(super) enum Typed {
    /// Something in memory.
    Place {
        at: Code,
        ty: TypeRef,
        /// Of a bit-field: its first bit behind the address, and how many.
        bits: Option<(u32, u32)>,
    },
    /// A number, and what it points to if it is a pointer.
    Number {
        code: Code,
        pointee: Option<TypeRef>,
    },
    Text(Code),
}

impl Typed {
    pub(super) fn into_code(self) -> Code {
        match self {
            Self::Place { at: code, .. } | Self::Number { code, .. } | Self::Text(code) => code,
        }
    }
}

fn plain(code: Code) -> Typed {
    Typed::Number { code, pointee: None }
}

impl Compiler<'_> {
    /// Compiles the text of an expression.
    pub(super) fn expression(&mut self, text: &str) -> Result<Typed, String> {
        let parsed = bt_lang::parse(&format!("BEGIN {{ @ = ({text}\n); }}"));
        if let Some(wrong) = parsed.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
            return Err(wrong.message.clone());
        }
        let expr = parsed.program.items.iter().find_map(|item| match &item.kind {
            ItemKind::Probe(probe) => probe.body.stmts.iter().find_map(|stmt| match &stmt.kind {
                StmtKind::Assign { value, .. } => Some(value),
                _ => None,
            }),
            _ => None,
        });
        self.compile(expr.ok_or("expected an expression")?)
    }

    fn compile(&mut self, expr: &Expr) -> Result<Typed, String> {
        match &expr.kind {
            ExprKind::Int(literal) => Ok(plain(Code::Int(literal.value))),
            ExprKind::Bool(truth) => Ok(plain(Code::Int(u64::from(*truth)))),
            ExprKind::Str(text) => Ok(Typed::Text(Code::Text(text.clone()))),
            ExprKind::Var(name) => {
                let index = self.vars.iter().position(|(known, _)| known == name);
                let index = index.ok_or_else(|| format!("no loop has the variable ${name}"))?;
                Ok(Typed::Number { code: Code::Var(index), pointee: Some(self.vars[index].1) })
            }
            ExprKind::Ident(name) => Err(format!("{name} has no type here: write (struct TYPE *)uaddr(\"{name}\")")),
            ExprKind::Field { base, name, .. } => {
                let base = self.compile(base)?;
                self.field(base, &name.text)
            }
            ExprKind::Index { base, index } => self.index(base, index),
            ExprKind::Cast { ty, operand } => {
                let operand = self.compile(operand)?;
                let operand = self.value(operand)?.into_code();
                Ok(Typed::Number { code: operand, pointee: self.cast(ty)? })
            }
            ExprKind::Call { func, args } => self.call(&func.text, args),
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary { op, left, right, .. } => {
                let (left, right) = (self.compile(left)?, self.compile(right)?);
                let (left, right) = (self.value(left)?.into_code(), self.value(right)?.into_code());
                Ok(plain(Code::Binary(*op, Box::new(left), Box::new(right))))
            }
            _ => Err("this kind of expression is not possible here".to_owned()),
        }
    }

    /// `*(uint32_t *)ADDRESS` and `*(struct TYPE **)ADDRESS`: of these pointers nothing else is needed.
    fn deref_of_cast(&mut self, operand: &Expr) -> Option<Result<Typed, String>> {
        let ExprKind::Cast { ty, operand } = &operand.kind else { return None };
        let AstKind::Pointer(target) = &ty.kind else { return None };
        let (size, signed, pointee) = match &target.kind {
            AstKind::Name(name) => {
                let scalar = bt_lang::ast::scalar(name).filter(|scalar| scalar.size > 0)?;
                (scalar.size, scalar.signed, None)
            }
            AstKind::Pointer(_) => match self.cast(target) {
                Ok(pointee) => (8, false, pointee),
                Err(what) => return Some(Err(what)),
            },
            _ => return None,
        };
        let at = self.compile(operand).and_then(|typed| self.value(typed));
        Some(at.map(|at| {
            let code = Code::Load { at: Box::new(at.into_code()), size, signed, bits: None };
            Typed::Number { code, pointee }
        }))
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> Result<Typed, String> {
        if op == UnaryOp::Deref
            && let Some(read) = self.deref_of_cast(operand)
        {
            return read;
        }
        let operand = self.compile(operand)?;
        match (op, operand) {
            (UnaryOp::Not, operand) => Ok(plain(Code::Not(Box::new(self.value(operand)?.into_code())))),
            (UnaryOp::AddrOf, Typed::Place { at, ty, bits: None }) => Ok(Typed::Number { code: at, pointee: Some(ty) }),
            (UnaryOp::Deref, operand) => match self.value(operand)? {
                Typed::Number { code, pointee: Some(ty) } => Ok(Typed::Place { at: code, ty, bits: None }),
                _ => Err("only a pointer can be followed".to_owned()),
            },
            _ => Err(format!("the operator {} is not possible here", op.text())),
        }
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> Result<Typed, String> {
        match (name, args) {
            ("uaddr", [Expr { kind: ExprKind::Str(symbol), .. }]) => {
                let symbol = String::from_utf8_lossy(symbol);
                let address = (self.program.globals)(&symbol);
                let address = address.ok_or_else(|| format!("the program has no symbol {symbol}"))?;
                Ok(plain(Code::Int(address)))
            }
            ("str", [text]) => {
                let typed = self.compile(text)?;
                let typed = self.value(typed)?;
                self.text(typed).map(Typed::Text)
            }
            ("strncmp", [one, other, Expr { kind: ExprKind::Int(count), .. }]) => {
                let mut texts = [one, other].into_iter().map(|text| {
                    let typed = self.compile(text)?;
                    let typed = self.value(typed)?;
                    self.text(typed).map(Box::new)
                });
                let (Some(one), Some(other)) = (texts.next(), texts.next()) else { return Err(String::new()) };
                let count = usize::try_from(count.value).unwrap_or(usize::MAX);
                Ok(plain(Code::Differ(one?, other?, count)))
            }
            _ => Err(format!("the call {name}() is not possible here: only str(), strncmp() and uaddr() are")),
        }
    }

    /// A member of a struct, or of the struct that a pointer points to.
    fn field(&self, base: Typed, name: &str) -> Result<Typed, String> {
        let (at, ty) = self.struct_of(base)?;
        let field = self.program.types.member(ty, name).map_err(|error| error.to_string())?;
        let bits = field.bit_size.map(|count| ((field.bit_offset % 8) as u32, count));
        Ok(Typed::Place { at: at.plus(field.bit_offset / 8), ty: field.ty, bits })
    }

    fn struct_of(&self, base: Typed) -> Result<(Code, TypeRef), String> {
        if let Typed::Place { at, ty, .. } = &base
            && matches!(self.kind(*ty)?, TypeKind::Struct { .. } | TypeKind::Union { .. })
        {
            return Ok((at.clone(), *ty));
        }
        match self.value(base)? {
            Typed::Number { code, pointee: Some(ty) } => Ok((code, self.complete(ty)?)),
            _ => Err("only a struct and a pointer to one have members".to_owned()),
        }
    }

    fn index(&mut self, base: &Expr, index: &Expr) -> Result<Typed, String> {
        let base = self.compile(base)?;
        let ExprKind::Int(index) = &index.kind else { return Err("an index is a number here".to_owned()) };
        let Typed::Number { code: at, pointee: Some(element) } = self.value(base)? else {
            return Err("only an array and a pointer have elements".to_owned());
        };
        let size = self.program.types.size_of(element).map_err(|error| error.to_string())?;
        let offset = size.checked_mul(index.value).ok_or("the index is too large")?;
        Ok(Typed::Place { at: at.plus(offset), ty: element, bits: None })
    }

    /// What is in memory, as a value: a number, a pointer, a text; an array of other things is a pointer to the first.
    pub(super) fn value(&self, typed: Typed) -> Result<Typed, String> {
        let Typed::Place { at, ty, bits } = typed else { return Ok(typed) };
        let at = Box::new(at);
        Ok(match self.kind(ty)? {
            TypeKind::Int { size, signed, .. } | TypeKind::Enum { size, signed } if size <= 8 => {
                let size = if bits.is_some() { 8 } else { size as u8 };
                plain(Code::Load { at, size, signed, bits })
            }
            TypeKind::Pointer { target, size } => {
                let code = Code::Load { at, size: size.min(8) as u8, signed: false, bits: None };
                Typed::Number { code, pointee: Some(target) }
            }
            TypeKind::Array { element, count } => match (self.is_char(element), count) {
                (true, Some(count)) => Typed::Text(Code::Chars(at, count)),
                _ => Typed::Number { code: *at, pointee: Some(element) },
            },
            _ => return Err(format!("{} is no number and no text", self.program.types.display(ty))),
        })
    }

    /// The text of a value: itself, or what it points to.
    pub(super) fn text(&self, typed: Typed) -> Result<Code, String> {
        match typed {
            Typed::Text(code) => Ok(code),
            Typed::Number { code, pointee: Some(ty) } if self.is_char(ty) => Ok(Code::Pointed(Box::new(code))),
            _ => Err("it is no text".to_owned()),
        }
    }

    fn cast(&mut self, ty: &Type) -> Result<Option<TypeRef>, String> {
        match &ty.kind {
            AstKind::Pointer(target) => match &target.kind {
                AstKind::Tagged(RecordKind::Struct, name) => self.named(NameKind::Struct, &name.text).map(Some),
                AstKind::Tagged(RecordKind::Union, name) => self.named(NameKind::Union, &name.text).map(Some),
                _ => Err("only a cast to a pointer to a struct or union is possible here".to_owned()),
            },
            AstKind::Name(_) => Ok(None),
            _ => Err("this cast is not possible here".to_owned()),
        }
    }

    /// The type of this name.
    pub(super) fn named(&mut self, kind: NameKind, name: &str) -> Result<TypeRef, String> {
        if let Some(known) = self.records.get(name) {
            return Ok(*known);
        }
        // Without the nearest names, for which all names of a large program would be read.
        let found = self.program.types.find(kind, name).map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("the program has no struct or union {name}"))?;
        self.records.insert(name.to_owned(), found);
        Ok(found)
    }

    /// What a pointer points to.
    pub(super) fn pointee(&self, ty: TypeRef) -> Option<TypeRef> {
        match self.kind(ty) {
            Ok(TypeKind::Pointer { target, .. }) => self.complete(target).ok(),
            _ => None,
        }
    }

    fn is_char(&self, ty: TypeRef) -> bool {
        matches!(self.kind(ty), Ok(TypeKind::Int { size: 1, .. }))
    }

    /// A type without names and qualifiers, with its definition if only its name is known here.
    fn complete(&self, ty: TypeRef) -> Result<TypeRef, String> {
        let types = self.program.types;
        let stripped = types.strip(ty).map_err(|error| error.to_string())?;
        types.complete(stripped).map_err(|error| error.to_string())
    }

    fn kind(&self, ty: TypeRef) -> Result<TypeKind, String> {
        let complete = self.complete(ty)?;
        self.program.types.kind(complete).map_err(|error| error.to_string())
    }
}
