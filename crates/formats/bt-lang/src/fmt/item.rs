//! Items.

use super::Printer;
use crate::ast::{Config, ConfigValue, Define, Fn, Item, ItemKind, Macro, MapDecl, Probe, Program};
use crate::lexer::text;

impl Printer<'_> {
    pub(super) fn program(&mut self, program: &Program) {
        if let Some(header) = &program.header {
            self.push(&header.text);
            self.end();
        }
        let mut before: Option<&Item> = None;
        for item in &program.items {
            let apart = before.is_some_and(|before| !(is_line(before) && is_line(item)));
            // A trailing comment of the last line must be printed first.
            let comment = self
                .comments
                .first()
                .filter(|comment| comment.span.start < item.span.start);
            if apart && comment.is_none_or(|comment| comment.own_line) {
                self.blank();
            }
            self.comments_before(item.span.start);
            self.blank_before(item.span.start);
            self.item(item);
            before = Some(item);
        }
        self.comments_before(u32::MAX);
    }

    fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Error => {
                // Unparsed text stays unchanged.
                let text = item.span.text(self.source).to_owned();
                self.push(text.trim_end());
            }
            ItemKind::Include(path) => self.push(&format!("#include {}", path.text)),
            ItemKind::Define(define) => self.define(define),
            ItemKind::Directive(line) => self.push(&format!("#{line}")),
            ItemKind::Record(record) => {
                self.record(record);
                self.push(";");
            }
            ItemKind::Enum(definition) => {
                self.enumeration(definition);
                self.push(";");
            }
            ItemKind::Typedef { name, ty } => {
                self.push("typedef ");
                self.declaration(ty, &name.text);
                self.push(";");
            }
            ItemKind::Config(config) => self.config(config, item.span.end),
            ItemKind::MapDecl(MapDecl { map, kind, entries }) => {
                self.push(&format!("let @{} = {}(", map.text, kind.text));
                self.expr(entries);
                self.push(");");
            }
            ItemKind::Macro(definition) => self.macro_item(definition),
            ItemKind::Import(path) => {
                self.push(&format!("import {};", text::quote(path.text.as_bytes())));
            }
            ItemKind::Fn(function) => self.function(function),
            ItemKind::Probe(probe) => self.probe(probe),
        }
        self.end();
    }

    fn define(&mut self, define: &Define) {
        self.push(&format!("#define {}", define.name.text));
        if !define.has_params && !define.text.is_empty() {
            self.push(" ");
        }
        self.push(&define.text);
    }

    fn config(&mut self, config: &Config, end: u32) {
        self.push("config = {");
        self.end();
        self.indent += 1;
        for entry in &config.entries {
            self.comments_before(entry.key.span.start);
            self.begin();
            let value = match &entry.value {
                ConfigValue::Int(value) => value.to_string(),
                ConfigValue::Bool(value) => value.to_string(),
                ConfigValue::Word(word) => word.clone(),
                ConfigValue::Str(bytes) => text::quote(bytes),
            };
            self.push(&format!("{} = {value};", entry.key.text));
            self.end();
        }
        self.comments_before(end);
        self.indent -= 1;
        self.push("}");
    }

    fn macro_item(&mut self, definition: &Macro) {
        let params: Vec<String> = definition
            .params
            .iter()
            .map(crate::ast::MacroParam::written)
            .collect();
        self.push(&format!(
            "macro {}({}) ",
            definition.name.text,
            params.join(", ")
        ));
        self.block(&definition.body, true);
    }

    fn function(&mut self, function: &Fn) {
        self.push(&format!("fn {}(", function.name.text));
        for (at, param) in function.params.iter().enumerate() {
            self.push(&format!(
                "{}${} : ",
                if at > 0 { ", " } else { "" },
                param.var.text
            ));
            self.ty(&param.ty);
        }
        self.push(") : ");
        self.ty(&function.returns);
        self.push(" ");
        self.block(&function.body, false);
    }

    fn probe(&mut self, probe: &Probe) {
        for (at, point) in probe.points.iter().enumerate() {
            if at > 0 {
                self.push(",");
                self.end();
                self.comments_before(point.span.start);
            }
            self.push(&point.raw);
        }
        if let Some(predicate) = &probe.predicate {
            self.push(if probe.points.len() > 1 { "\n/" } else { " /" });
            // `/*` would begin a comment.
            self.grouped_if('*', |printer| printer.expr(predicate));
            self.push("/");
        }
        self.push(" ");
        self.block(&probe.body, false);
    }
}

/// Returns whether the item is a single line that needs no empty line between its like.
fn is_line(item: &Item) -> bool {
    matches!(
        item.kind,
        ItemKind::Include(_)
            | ItemKind::Define(_)
            | ItemKind::Directive(_)
            | ItemKind::Typedef { .. }
            | ItemKind::MapDecl(_)
            | ItemKind::Import(_)
    )
}
