//! Items.

use bt_lang::ast::{
    CEnum, CField, CRecord, CVariant, Config, ConfigEntry, ConfigValue, Expr, ExprKind, Fn,
    FnParam, Item, ItemKind, Macro, MacroParam, MapDecl, Name, Probe, RecordKind, Span, Type,
    TypeKind,
};

use super::Chance;

const POINTS: [&str; 12] = [
    "BEGIN",
    "uprobe:/bin/x:f+4",
    "u:\"/a b\":\"f(int, char)\"",
    "usdt:*:p:n",
    "t:sched:*",
    "interval:s:1",
    "s:faults:10",
    "k:f*",
    "w:0x10:8:rw",
    "mine=fentry:f",
    "uprobe:/bin/x@a.c:10:2",
    "*:x",
];

impl Chance {
    pub(super) fn item(&mut self, depth: u32) -> Item {
        let kind = match self.below(14) {
            0 => ItemKind::Include(Name::new("<linux/sched.h>", Span::default())),
            1 => ItemKind::Record(self.record(2)),
            2 => ItemKind::Enum(self.enumeration()),
            3 => ItemKind::Typedef {
                name: self.name(),
                ty: self.c_type(3),
            },
            4 => ItemKind::Config(self.config()),
            5 => ItemKind::MapDecl(MapDecl {
                map: self.name(),
                kind: self.name(),
                entries: self.expr(1),
            }),
            6 => {
                let params = vec![
                    MacroParam::Var(self.name()),
                    MacroParam::Map(self.name()),
                    MacroParam::Expr(self.name()),
                ];
                ItemKind::Macro(Macro {
                    name: self.name(),
                    params,
                    body: self.block(depth, true),
                })
            }
            7 => ItemKind::Import(Name::new("stdlib/\"x", Span::default())),
            8 => {
                let params = self.many(2, |chance| FnParam {
                    var: chance.name(),
                    ty: chance.ty(2),
                });
                ItemKind::Fn(Fn {
                    name: self.name(),
                    params,
                    returns: self.ty(2),
                    body: self.block(depth, false),
                })
            }
            _ => ItemKind::Probe(self.probe(depth)),
        };
        Item {
            kind,
            span: Span::default(),
        }
    }

    /// Parses a probe from a script, since attach points hold their text.
    fn probe(&mut self, depth: u32) -> Probe {
        let text: Vec<&str> = (0..=self.below(2)).map(|_| self.pick(&POINTS)).collect();
        let parsed = bt_lang::parse(&format!("{} {{}}", text.join(",")));
        assert_eq!(parsed.diagnostics, [], "{text:?}");
        let Some(ItemKind::Probe(probe)) = parsed
            .program
            .items
            .into_iter()
            .next()
            .map(|item| item.kind)
        else {
            panic!("{text:?} is no probe");
        };
        let predicate = self.maybe(|chance| chance.expr(depth));
        Probe {
            predicate,
            body: self.block(depth, false),
            ..probe
        }
    }

    fn config(&mut self) -> Config {
        let entries = self.many(3, |chance| ConfigEntry {
            key: chance.name(),
            value: match chance.below(4) {
                0 => ConfigValue::Int(chance.below(1000) as u64),
                1 => ConfigValue::Bool(chance.coin()),
                2 => ConfigValue::Word("perf".to_owned()),
                _ => ConfigValue::Str(b"\xffx".to_vec()),
            },
            value_span: Span::default(),
        });
        Config { entries }
    }

    fn enumeration(&mut self) -> CEnum {
        let variants = self.many(3, |chance| {
            let value = chance.maybe(|chance| chance.expr(2));
            CVariant {
                name: chance.name(),
                value,
            }
        });
        CEnum {
            name: self.maybe(Self::name),
            variants,
            span: Span::default(),
        }
    }

    fn record(&mut self, depth: u32) -> CRecord {
        let fields = self.many(3, |chance| chance.field(depth));
        let aligned = self.maybe(|chance| Box::new(chance.expr(1)));
        let kind = self.pick(&[RecordKind::Struct, RecordKind::Union]);
        CRecord {
            kind,
            name: Some(self.name()),
            fields: Some(fields),
            packed: self.coin(),
            aligned,
            span: Span::default(),
        }
    }

    fn field(&mut self, depth: u32) -> CField {
        let span = Span::default();
        if depth > 0 && self.below(4) == 0 {
            let mut record = self.record(depth - 1);
            record.name = None;
            let ty = Type::new(TypeKind::Inline(Box::new(record)), span);
            return CField {
                name: self.maybe(Self::name),
                ty,
                bits: None,
                span,
            };
        }
        let bits = if self.below(4) == 0 {
            Some(small())
        } else {
            None
        };
        let ty = if bits.is_some() {
            self.c_type(0)
        } else {
            self.c_type(3)
        };
        let name = if bits.is_some() && self.coin() {
            None
        } else {
            Some(self.name())
        };
        CField {
            name,
            ty,
            bits,
            span,
        }
    }

    /// Generates a type that C can declare with one group of parentheses.
    fn c_type(&mut self, depth: u32) -> Type {
        let mut kind = match self.below(3) {
            0 => TypeKind::Name(self.pick(&["unsigned int", "char", "u64"]).to_owned()),
            1 => TypeKind::Name("foo_t".to_owned()),
            _ => TypeKind::Tagged(RecordKind::Struct, self.name()),
        };
        let mut grouped = false;
        for _ in 0..self.below(depth as usize + 1) {
            let inner = Box::new(Type::new(kind, Span::default()));
            let array = matches!(inner.kind, TypeKind::Array(..));
            kind = if self.coin() && !(array && grouped) {
                grouped |= array;
                TypeKind::Pointer(inner)
            } else {
                TypeKind::Array(inner, self.maybe(|_| Box::new(small())))
            };
        }
        Type::new(kind, Span::default())
    }
}

fn small() -> Expr {
    Expr::new(ExprKind::Ident("BITS".to_owned()), Span::default())
}
