//! Items, C definitions and attach points.

use super::{Dump, quoted};
use crate::ast::{
    AttachPoint, CEnum, CField, CRecord, CVariant, Config, ConfigEntry, ConfigValue, Item,
    ItemKind, MacroParam, Part, PointForm, Probe,
};
use crate::lexer::text;

impl Dump {
    pub(super) fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Error => self.push("(error)"),
            ItemKind::Include(path) => self.leaf("include", &path.text),
            ItemKind::Define(define) => self.node("define", |out| {
                out.word(&define.name.text);
                match &define.value {
                    Some(value) => out.part(|out| out.expr(value)),
                    None => out.word(&quoted(&define.text)),
                }
            }),
            ItemKind::Directive(line) => self.leaf("directive", &quoted(line)),
            ItemKind::Record(record) => self.record(record),
            ItemKind::Enum(definition) => self.enumeration(definition),
            ItemKind::Typedef { name, ty } => self.node("typedef", |out| {
                out.word(&name.text);
                out.part(|out| out.ty(ty));
            }),
            ItemKind::Config(config) => self.config(config),
            ItemKind::MapDecl(map) => self.node("map", |out| {
                out.word(&format!("@{} {}", map.map.text, map.kind.text));
                out.part(|out| out.expr(&map.entries));
            }),
            ItemKind::Macro(definition) => self.node("macro", |out| {
                out.word(&definition.name.text);
                let params: Vec<String> =
                    definition.params.iter().map(MacroParam::written).collect();
                out.word(&format!("({})", params.join(" ")));
                out.part(|out| out.block("block", &definition.body));
            }),
            ItemKind::Import(path) => self.leaf("import", &quoted(&path.text)),
            ItemKind::Fn(function) => self.node("fn", |out| {
                out.word(&function.name.text);
                for param in &function.params {
                    out.word(&format!("${}:", param.var.text));
                    out.ty(&param.ty);
                }
                out.word("->");
                out.part(|out| out.ty(&function.returns));
                out.part(|out| out.block("block", &function.body));
            }),
            ItemKind::Probe(probe) => self.probe(probe),
        }
    }

    fn config(&mut self, config: &Config) {
        self.node("config", |out| {
            out.lines(&config.entries, |out, entry: &ConfigEntry| {
                let value = match &entry.value {
                    ConfigValue::Int(value) => value.to_string(),
                    ConfigValue::Bool(value) => value.to_string(),
                    ConfigValue::Word(word) => word.clone(),
                    ConfigValue::Str(bytes) => text::quote(bytes),
                };
                out.leaf(&entry.key.text, &value);
            });
        });
    }

    fn probe(&mut self, probe: &Probe) {
        self.node("probe", |out| {
            out.lines(&probe.points, Self::point);
            out.indent += 1;
            if let Some(predicate) = &probe.predicate {
                out.line();
                out.node("if", |out| out.part(|out| out.expr(predicate)));
            }
            out.line();
            out.block("block", &probe.body);
            out.indent -= 1;
        });
    }

    fn point(&mut self, point: &AttachPoint) {
        self.node(point.kind.name(), |out| {
            if let Some(alias) = &point.alias {
                out.part(|out| out.leaf("as", &alias.text));
            }
            out.form(&point.form);
        });
    }

    fn form(&mut self, form: &PointForm) {
        for (word, part) in texts_of(form)
            .into_iter()
            .filter_map(|(word, part)| part.map(|part| (word, part)))
        {
            let word = if part.wildcard {
                format!("{word}~")
            } else {
                word.to_owned()
            };
            self.part(|out| out.leaf(&word, &quoted(&part.text)));
        }
        for (word, number) in numbers_of(form)
            .into_iter()
            .filter_map(|(word, number)| number.map(|number| (word, number)))
        {
            self.part(|out| out.leaf(word, &number.to_string()));
        }
    }

    pub(super) fn record(&mut self, record: &CRecord) {
        self.node(record.kind.text(), |out| {
            if let Some(name) = &record.name {
                out.word(&name.text);
            }
            if record.packed {
                out.word("packed");
            }
            if let Some(aligned) = &record.aligned {
                out.part(|out| out.node("aligned", |out| out.part(|out| out.expr(aligned))));
            }
            match &record.fields {
                Some(fields) => out.lines(fields, Self::field),
                None => out.word("declared"),
            }
        });
    }

    fn field(&mut self, field: &CField) {
        self.node(field.name.as_ref().map_or("_", |name| &name.text), |out| {
            out.part(|out| out.ty(&field.ty));
            if let Some(bits) = &field.bits {
                out.part(|out| out.node("bits", |out| out.part(|out| out.expr(bits))));
            }
        });
    }

    pub(super) fn enumeration(&mut self, definition: &CEnum) {
        self.node("enum", |out| {
            if let Some(name) = &definition.name {
                out.word(&name.text);
            }
            out.lines(&definition.variants, |out, variant: &CVariant| {
                out.push(&variant.name.text);
                if let Some(value) = &variant.value {
                    out.push("=");
                    out.expr(value);
                }
            });
        });
    }
}

/// Returns the parts of a form that are text, with their words.
fn texts_of(form: &PointForm) -> Vec<(&'static str, Option<&Part>)> {
    match form {
        PointForm::Bare => Vec::new(),
        PointForm::Own { group, name } => vec![("group", Some(group)), ("name", name.as_ref())],
        PointForm::Function {
            target,
            lang,
            function,
            ..
        } => vec![
            ("target", target.as_ref()),
            ("lang", lang.as_ref()),
            ("function", function.as_ref()),
        ],
        PointForm::Source { target, line } => {
            vec![("target", Some(target)), ("source", Some(&line.file))]
        }
        PointForm::Usdt {
            target,
            provider,
            name,
        } => vec![
            ("target", target.as_ref()),
            ("provider", provider.as_ref()),
            ("name", Some(name)),
        ],
        PointForm::Event { category, name } => {
            vec![("category", category.as_ref()), ("name", Some(name))]
        }
        PointForm::Timer { unit, .. } => vec![("unit", unit.as_ref())],
        PointForm::Sample { event, .. } => vec![("event", Some(event))],
        PointForm::Watch { place, mode, .. } => vec![("place", Some(place)), ("mode", Some(mode))],
        PointForm::Iter { object, pin } => vec![("object", Some(object)), ("pin", pin.as_ref())],
        PointForm::Parts(list) => list.iter().map(|part| ("part", Some(part))).collect(),
    }
}

/// Returns the parts of a form that are numbers, with their words.
fn numbers_of(form: &PointForm) -> Vec<(&'static str, Option<u64>)> {
    match form {
        PointForm::Function {
            offset, address, ..
        } => vec![
            ("offset", Some(*offset).filter(|offset| *offset > 0)),
            ("address", *address),
        ],
        PointForm::Source { line, .. } => vec![
            ("line", Some(line.line.into())),
            ("column", line.column.map(u64::from)),
        ],
        PointForm::Timer { count, .. } => vec![("count", Some(*count))],
        PointForm::Sample { period, .. } => vec![("period", *period)],
        PointForm::Watch { length, .. } => vec![("length", Some(*length))],
        PointForm::Bare
        | PointForm::Own { .. }
        | PointForm::Usdt { .. }
        | PointForm::Event { .. }
        | PointForm::Iter { .. }
        | PointForm::Parts(_) => Vec::new(),
    }
}
