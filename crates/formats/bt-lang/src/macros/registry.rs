//! Selects the macro for a call.

use crate::ast::{Expr, ExprKind, Macro, MacroParam, Span};
use crate::diag::{Diagnostic, Sink};

/// All known macros.
pub(super) struct Registry<'a> {
    own: Vec<Macro>,
    library: &'a [Macro],
    /// Predicate for names of the language's builtins and functions.
    is_word: &'a dyn Fn(&str) -> bool,
}

impl<'a> Registry<'a> {
    /// Collects the macros of the script and of a library. Reports macros that cannot be
    /// distinguished.
    pub(super) fn new(
        all: Vec<Macro>,
        library: &'a [Macro],
        is_word: &'a dyn Fn(&str) -> bool,
        sink: &mut Sink,
    ) -> Self {
        let mut own: Vec<Macro> = Vec::new();
        for definition in all {
            let kinds: Vec<_> = definition
                .params
                .iter()
                .map(|param| Some(param.clone()))
                .collect();
            let first = own
                .iter()
                .find(|other| other.name.text == definition.name.text && fits(other, &kinds));
            if let Some(first) = first {
                let message = format!(
                    "there is a macro `{}` with such parameters already",
                    definition.name.text
                );
                let diagnostic = Diagnostic::error(message, definition.name.span);
                sink.push(diagnostic.with_label(first.name.span, "the first"));
                continue;
            }
            own.push(definition);
        }
        Self {
            own,
            library,
            is_word,
        }
    }

    /// Returns the macro for a call, `None` if the name is no macro, or an error if none of its
    /// parameter lists matches.
    pub(super) fn find(
        &self,
        name: &str,
        args: &[Expr],
        span: Span,
    ) -> Result<Option<&Macro>, Box<Diagnostic>> {
        let kinds: Vec<Option<MacroParam>> = args.iter().map(kind).collect();
        let named = || {
            self.own
                .iter()
                .chain(self.library)
                .filter(|definition| definition.name.text == name)
        };
        if let Some(found) = named().find(|definition| fits(definition, &kinds)) {
            return Ok(Some(found));
        }
        let Some(near) =
            named().min_by_key(|definition| definition.params.len().abs_diff(args.len()))
        else {
            return Ok(None);
        };
        // The language's own word keeps its meaning if the number of arguments differs.
        if near.params.len() != args.len() && (self.is_word)(name) {
            return Ok(None);
        }
        Err(Box::new(mismatch(near, args, &kinds, span)))
    }
}

/// Returns the parameter kind, besides an expression, that the argument can be passed to.
fn kind(arg: &Expr) -> Option<MacroParam> {
    match &arg.kind {
        ExprKind::Var(name) => Some(MacroParam::Var(crate::ast::Name::new(
            name.clone(),
            arg.span,
        ))),
        ExprKind::Map(map) if map.keys.is_empty() => Some(MacroParam::Map(map.name.clone())),
        _ => None,
    }
}

fn fits(definition: &Macro, args: &[Option<MacroParam>]) -> bool {
    definition.params.len() == args.len()
        && definition
            .params
            .iter()
            .zip(args)
            .all(|(param, arg)| takes(param, arg.as_ref()))
}

fn takes(param: &MacroParam, arg: Option<&MacroParam>) -> bool {
    match param {
        MacroParam::Var(_) => matches!(arg, Some(MacroParam::Var(_))),
        MacroParam::Map(_) => matches!(arg, Some(MacroParam::Map(_))),
        MacroParam::Expr(_) => true,
    }
}

fn mismatch(near: &Macro, args: &[Expr], kinds: &[Option<MacroParam>], span: Span) -> Diagnostic {
    let name = &near.name.text;
    if near.params.len() != args.len() {
        let (wanted, given) = (near.params.len(), args.len());
        let arguments = if wanted == 1 { "argument" } else { "arguments" };
        let are = if given == 1 { "is" } else { "are" };
        let message = format!("`{name}` takes {wanted} {arguments}, and here {are} {given}");
        return Diagnostic::error(message, span).with_label(near.name.span, "the macro");
    }
    let wrong = near
        .params
        .iter()
        .zip(kinds)
        .position(|(param, kind)| !takes(param, kind.as_ref()))
        .unwrap_or(0);
    let param = &near.params[wrong];
    let what = if matches!(param, MacroParam::Map(_)) {
        "a map without a key"
    } else {
        "a variable"
    };
    let message = format!("`{name}` takes {what} here, for `{}`", param.written());
    Diagnostic::error(message, args[wrong].span).with_label(param.name().span, "the parameter")
}
