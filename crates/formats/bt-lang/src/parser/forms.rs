//! Meaning of the parts of an attach point, by the kind of probe.

use super::Parser;
use crate::ast::{Part, PointForm, ProbeKind, SourceLine, Span};
use crate::diag::Diagnostic;
use crate::lexer::number;

/// Unsorted parts of an attach point.
pub(super) struct Parts<'p> {
    pub(super) kind: ProbeKind,
    pub(super) provider: &'p Part,
    pub(super) rest: Vec<Part>,
    /// True if the point has positional parameters that aren't known yet.
    pub(super) open: bool,
    pub(super) span: Span,
}

/// Returns the minimum and maximum number of parts of a kind, and examples.
fn shape(kind: ProbeKind) -> (usize, usize, &'static str) {
    match kind {
        ProbeKind::Begin | ProbeKind::End => (0, 0, ""),
        ProbeKind::SelfEvent => (2, 2, ":signal:SIGUSR1"),
        ProbeKind::Test | ProbeKind::Bench => (1, 1, ":name"),
        ProbeKind::Kprobe => (1, 2, ":function, :function+offset, :module:function"),
        ProbeKind::Kretprobe => (1, 2, ":function, :module:function"),
        ProbeKind::Fentry | ProbeKind::Fexit => (1, 3, ":function, :module:function"),
        ProbeKind::Uprobe => (
            1,
            3,
            ":file:function, :file:function+offset, :file:cpp:function, :function with -p",
        ),
        ProbeKind::Uretprobe => (
            1,
            3,
            ":file:function, :file:cpp:function, :function with -p",
        ),
        ProbeKind::Usdt => (1, 3, ":file:provider:name, :file:name, :name with -p"),
        ProbeKind::Tracepoint => (2, 2, ":category:event"),
        ProbeKind::Rawtracepoint => (1, 2, ":event, :module:event"),
        ProbeKind::Interval => (1, 2, ":s:1, :ms:10, :hz:99, :10ms"),
        ProbeKind::Profile => (1, 2, ":hz:99, :ms:10, :10ms"),
        ProbeKind::Software | ProbeKind::Hardware => (1, 2, ":event, :event:count"),
        ProbeKind::Watchpoint | ProbeKind::Asyncwatchpoint => (3, 3, ":address:length:mode"),
        ProbeKind::Iter => (1, 2, ":object, :object:pin"),
        ProbeKind::Pattern | ProbeKind::Unknown => (0, usize::MAX, ""),
    }
}

impl Parser<'_> {
    /// Sorts the parts; returns them as they are if that is not possible.
    pub(super) fn form(&mut self, parts: Parts<'_>) -> PointForm {
        let Parts {
            kind,
            provider,
            mut rest,
            open,
            span,
        } = parts;
        if open || matches!(kind, ProbeKind::Pattern | ProbeKind::Unknown) {
            return PointForm::Parts(rest);
        }
        if let [group] = &rest[..]
            && group.wildcard
        {
            match kind {
                // bpftrace's parser allows these, for listing.
                ProbeKind::Begin | ProbeKind::End if group.text == "*" => return PointForm::Bare,
                ProbeKind::Tracepoint => rest.insert(
                    0,
                    Part {
                        text: "*".to_owned(),
                        ..group.clone()
                    },
                ),
                _ => {}
            }
        }
        if kind == ProbeKind::Uprobe && rest.get(1).is_some_and(|part| part.text == "@") {
            return self.source_form(rest, span);
        }
        let (least, most, example) = shape(kind);
        if rest.len() < least || rest.len() > most {
            let name = kind.name();
            let message = format!(
                "`{}` takes {} after it, and {} found",
                provider.text,
                counted(least, most),
                are(rest.len())
            );
            let mut diagnostic = Diagnostic::error(message, span);
            if !example.is_empty() {
                diagnostic = diagnostic.with_hint(format!(
                    "it looks like `{name}{}`",
                    example.replace(", :", &format!("`, `{name}:"))
                ));
            }
            self.sink.push(diagnostic);
            return PointForm::Parts(rest);
        }
        match sorted(kind, &rest) {
            Ok(form) => form,
            Err(diagnostic) => {
                self.sink.push(diagnostic);
                PointForm::Parts(rest)
            }
        }
    }

    /// Parses `file@source.c:line:column`.
    fn source_form(&mut self, rest: Vec<Part>, span: Span) -> PointForm {
        let numbers: Option<Vec<u32>> = rest
            .iter()
            .skip(3)
            .map(|part| {
                number::parse(&part.text)
                    .ok()
                    .and_then(|lit| u32::try_from(lit.value).ok())
            })
            .collect();
        match (&rest[..], numbers.as_deref()) {
            ([target, _, file, ..], Some([line, column @ ..]))
                if column.len() <= 1 && !file.text.is_empty() =>
            {
                let line = SourceLine {
                    file: file.clone(),
                    line: *line,
                    column: column.first().copied(),
                };
                PointForm::Source {
                    target: target.clone(),
                    line,
                }
            }
            _ => {
                let hint = "it looks like `uprobe:file@source.c:line`";
                self.sink.push(
                    Diagnostic::error("this isn't a line of a source file", span).with_hint(hint),
                );
                PointForm::Parts(rest)
            }
        }
    }
}

/// Sorts the parts by their meaning for the kind.
fn sorted(kind: ProbeKind, rest: &[Part]) -> Result<PointForm, Diagnostic> {
    let mut rest = rest.iter().cloned();
    let mut parts = [rest.next(), rest.next(), rest.next()];
    let count = parts.iter().flatten().count();
    // Optional parts come first, so the last one is the required one.
    let last = count.checked_sub(1).and_then(|at| parts[at].take());
    let [first, second, _] = parts;
    let Some(last) = last else {
        return Ok(PointForm::Bare);
    };
    match kind {
        ProbeKind::Begin | ProbeKind::End | ProbeKind::Pattern | ProbeKind::Unknown => {
            Ok(PointForm::Bare)
        }
        ProbeKind::SelfEvent | ProbeKind::Test | ProbeKind::Bench => Ok(match first {
            Some(group) => PointForm::Own {
                group,
                name: Some(last),
            },
            None => PointForm::Own {
                group: last,
                name: None,
            },
        }),
        ProbeKind::Kprobe
        | ProbeKind::Uprobe
        | ProbeKind::Kretprobe
        | ProbeKind::Uretprobe
        | ProbeKind::Fentry
        | ProbeKind::Fexit => function_form(kind, first, second, last),
        ProbeKind::Usdt => Ok(PointForm::Usdt {
            target: filled(first),
            provider: filled(second),
            name: needed(last, "name")?,
        }),
        ProbeKind::Tracepoint | ProbeKind::Rawtracepoint => Ok(PointForm::Event {
            category: filled(first),
            name: needed(last, "event")?,
        }),
        ProbeKind::Interval | ProbeKind::Profile => timer(first, &last),
        ProbeKind::Software | ProbeKind::Hardware => sample(first, last),
        ProbeKind::Watchpoint | ProbeKind::Asyncwatchpoint => watch(first, second, last),
        ProbeKind::Iter => Ok(match first {
            Some(object) => PointForm::Iter {
                object,
                pin: Some(last),
            },
            None => PointForm::Iter {
                object: last,
                pin: None,
            },
        }),
    }
}

fn function_form(
    kind: ProbeKind,
    target: Option<Part>,
    lang: Option<Part>,
    function: Part,
) -> Result<PointForm, Diagnostic> {
    let (target, lang) = match (target, lang) {
        // `uprobe:cpp:function` is a function of the process given with -p.
        (Some(only), None) if only.text == "cpp" && kind != ProbeKind::Kprobe => (None, Some(only)),
        other => other,
    };
    let (target, lang) = (filled(target), filled(lang));
    let mut function = needed(function, "function")?;
    let user = matches!(kind, ProbeKind::Uprobe | ProbeKind::Uretprobe);
    if user && target.is_none() && lang.is_none() && function.text.starts_with(['/', '.']) {
        let hint = format!("it looks like `{}:{}:function`", kind.name(), function.text);
        return Err(
            Diagnostic::error("this is a file, and there is no function", function.span)
                .with_hint(hint),
        );
    }
    let returns = matches!(
        kind,
        ProbeKind::Kretprobe | ProbeKind::Uretprobe | ProbeKind::Fentry | ProbeKind::Fexit
    );
    // A C++ name may contain an operator's `+`.
    let plus = if lang.is_some() {
        None
    } else {
        function.text.rfind('+')
    };
    if let Some(plus) = plus {
        if returns {
            let message = format!("`{}` takes no offset", kind.name());
            return Err(Diagnostic::error(message, function.span));
        }
        let offset = number_of(function.text[plus + 1..].trim(), function.span, "an offset")?;
        function.text.truncate(plus);
        function.text.truncate(function.text.trim_end().len());
        return Ok(PointForm::Function {
            target,
            lang,
            function: Some(needed(function, "function")?),
            offset,
            address: None,
        });
    }
    match number::parse(&function.text) {
        Ok(lit) => Ok(PointForm::Function {
            target,
            lang,
            function: None,
            offset: 0,
            address: Some(lit.value),
        }),
        Err(_) => Ok(PointForm::Function {
            target,
            lang,
            function: Some(function),
            offset: 0,
            address: None,
        }),
    }
}

/// Returns the part, or `None` if it is empty.
fn filled(part: Option<Part>) -> Option<Part> {
    part.filter(|part| !part.text.is_empty())
}

fn needed(part: Part, what: &str) -> Result<Part, Diagnostic> {
    if part.text.is_empty() {
        return Err(Diagnostic::error(
            format!("there is no {what} in this attach point"),
            part.span,
        ));
    }
    Ok(part)
}

fn number_of(text: &str, span: Span, what: &str) -> Result<u64, Diagnostic> {
    let lit = number::parse(text)
        .map_err(|why| Diagnostic::error(format!("`{text}` isn't {what}: {why}"), span))?;
    Ok(lit.value)
}

/// Parses `unit:count`, or `10ms`.
fn timer(unit: Option<Part>, count: &Part) -> Result<PointForm, Diagnostic> {
    if unit.is_none() && count.wildcard {
        return Ok(PointForm::Parts(vec![count.clone()]));
    }
    let value = number_of(&count.text, count.span, "a number")?;
    let nanos = unit.is_none();
    // bpftrace's minimum is a microsecond.
    if value == 0 || (nanos && value < 1_000) {
        let message = if nanos {
            "the shortest interval is 1us"
        } else {
            "a timer's count is at least 1"
        };
        let hint = if nanos {
            "a number alone is nanoseconds; write `1s` or `ms:10`"
        } else {
            "count from 1"
        };
        return Err(Diagnostic::error(message, count.span).with_hint(hint));
    }
    let units = ["hz", "s", "ms", "us", "ns"];
    if let Some(wrong) = unit
        .as_ref()
        .filter(|unit| !units.contains(&unit.text.as_str()))
    {
        let message = format!("`{}` isn't a unit of time", wrong.text);
        return Err(Diagnostic::error(message, wrong.span)
            .with_hint("it is one of `hz`, `s`, `ms`, `us`, `ns`"));
    }
    Ok(PointForm::Timer { unit, count: value })
}

/// Parses `event` or `event:count`.
fn sample(event: Option<Part>, last: Part) -> Result<PointForm, Diagnostic> {
    let Some(event) = event else {
        return Ok(PointForm::Sample {
            event: needed(last, "event")?,
            period: None,
        });
    };
    let period = if last.text.is_empty() || last.text == "*" {
        None
    } else {
        Some(number_of(&last.text, last.span, "a count")?)
    };
    Ok(PointForm::Sample {
        event: needed(event, "event")?,
        period,
    })
}

/// Parses `address:length:mode`.
fn watch(place: Option<Part>, length: Option<Part>, mode: Part) -> Result<PointForm, Diagnostic> {
    let (Some(place), Some(length)) = (place, length) else {
        return Err(Diagnostic::error(
            "expected `address:length:mode`",
            mode.span,
        ));
    };
    if mode.text.is_empty() || !mode.text.chars().all(|c| "rwx".contains(c)) {
        return Err(Diagnostic::error(
            "a watchpoint's mode is made of `r`, `w` and `x`",
            mode.span,
        ));
    }
    let length = number_of(&length.text, length.span, "a length")?;
    Ok(PointForm::Watch {
        place: needed(place, "address")?,
        length,
        mode,
    })
}

fn counted(least: usize, most: usize) -> String {
    match (least, most) {
        (0, 0) => "nothing".to_owned(),
        (1, 1) => "one part".to_owned(),
        _ if least == most => format!("{least} parts"),
        _ => format!("{least} to {most} parts"),
    }
}

fn are(count: usize) -> String {
    if count == 1 {
        "1 is".to_owned()
    } else {
        format!("{count} are")
    }
}
