//! C definitions, as C writes them.

use super::Printer;
use crate::ast::{CEnum, CField, CRecord, RecordKind, Type, TypeKind};

impl Printer<'_> {
    /// Prints a struct or union, without `;`.
    pub(super) fn record(&mut self, record: &CRecord) {
        self.push(record.kind.text());
        if let Some(name) = &record.name {
            self.push(&format!(" {}", name.text));
        }
        let Some(fields) = &record.fields else { return };
        self.push(" {");
        self.end();
        self.indent += 1;
        for field in fields {
            self.comments_before(field.span.start);
            self.begin();
            self.field(field);
            self.end();
        }
        self.comments_before(record.span.end);
        self.indent -= 1;
        self.begin();
        self.push("}");
        if record.packed {
            self.push(" __attribute__((packed))");
        }
        if let Some(aligned) = &record.aligned {
            self.push(" __attribute__((aligned(");
            self.expr(aligned);
            self.push(")))");
        }
    }

    fn field(&mut self, field: &CField) {
        self.declaration(&field.ty, field.name.as_ref().map_or("", |name| &name.text));
        if let Some(bits) = &field.bits {
            self.push(" : ");
            self.expr(bits);
        }
        self.push(";");
    }

    /// Prints an enum, without `;`.
    pub(super) fn enumeration(&mut self, definition: &CEnum) {
        self.push(RecordKind::Enum.text());
        if let Some(name) = &definition.name {
            self.push(&format!(" {}", name.text));
        }
        self.push(" {");
        self.end();
        self.indent += 1;
        for variant in &definition.variants {
            self.comments_before(variant.name.span.start);
            self.begin();
            self.push(&variant.name.text);
            if let Some(value) = &variant.value {
                self.push(" = ");
                self.expr(value);
            }
            self.push(",");
            self.end();
        }
        self.comments_before(definition.span.end);
        self.indent -= 1;
        self.begin();
        self.push("}");
    }

    /// Prints a type and a name as a C declaration: the derived types stand around the name.
    pub(super) fn declaration(&mut self, ty: &Type, name: &str) {
        let mut declarator = name.to_owned();
        let mut base = ty;
        loop {
            base = match &base.kind {
                TypeKind::Pointer(inner) => {
                    declarator = format!("*{declarator}");
                    if matches!(inner.kind, TypeKind::Array(..) | TypeKind::Function) {
                        declarator = format!("({declarator})");
                    }
                    inner
                }
                TypeKind::Array(inner, length) => {
                    let length = length
                        .as_ref()
                        .map(|length| self.aside(|printer| printer.expr(length)));
                    declarator = format!("{declarator}[{}]", length.unwrap_or_default());
                    inner
                }
                _ => break,
            };
        }
        match &base.kind {
            TypeKind::Inline(record) => self.record(record),
            TypeKind::InlineEnum(definition) => self.enumeration(definition),
            TypeKind::Function => {
                self.push("void");
                declarator = if declarator.starts_with('(') {
                    declarator
                } else {
                    format!("({declarator})")
                };
                declarator.push_str("()");
            }
            _ => self.ty(base),
        }
        if !declarator.is_empty() {
            self.push(" ");
            self.push(&declarator);
        }
    }

    /// Returns the text that `print` prints, without adding it to the output.
    fn aside(&mut self, print: impl FnOnce(&mut Self)) -> String {
        let whole = std::mem::take(&mut self.out);
        print(self);
        std::mem::replace(&mut self.out, whole)
    }
}
