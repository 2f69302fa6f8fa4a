//! Programs that we run ourselves: `begin`, `end`, signals, tests and benchmarks.

use bpf_program::ProgramKind;
use bt_abi::Attach;
use bt_lang::ast::{AttachPoint, PointForm, ProbeKind};

use super::{Target, context, refused, unsupported};
use crate::ctx::Inputs;
use crate::facts::NotFound;

/// Resolves `begin`, `end`, `self:signal:NAME`, `test:NAME` and `bench:NAME`.
pub(super) fn targets(inputs: &Inputs<'_>, point: &AttachPoint) -> Result<Vec<Target>, NotFound> {
    let (attach, name) = match (point.kind, &point.form) {
        (ProbeKind::Begin, _) => (Attach::Begin, "begin".to_owned()),
        (ProbeKind::End, _) => (Attach::End, "end".to_owned()),
        (
            ProbeKind::SelfEvent,
            PointForm::Own {
                name: Some(name), ..
            },
        ) => {
            let signal = bt_abi::signals::number(&name.text).ok_or_else(|| {
                refused(
                    format!("{} is not a signal", name.text),
                    "as in self:signal:SIGUSR1",
                )
            })?;
            let signal = signal as i32;
            (
                Attach::Signal { signal },
                format!("self:signal:{}", name.text),
            )
        }
        (ProbeKind::Test | ProbeKind::Bench, PointForm::Own { group, .. }) => {
            let attach = Attach::Manual {
                name: group.text.clone(),
                is_test: point.kind == ProbeKind::Test,
            };
            (attach, format!("{}:{}", point.kind.name(), group.text))
        }
        (kind, _) => return Err(unsupported(kind)),
    };
    Ok(vec![own_program(inputs, point.kind, attach, name)])
}

/// Builds the target of a program that we run ourselves.
fn own_program(inputs: &Inputs<'_>, kind: ProbeKind, attach: Attach, name: String) -> Target {
    Target {
        context: context(inputs, kind, &name),
        kind: ProgramKind::RawTracepoint,
        btf: None,
        attach,
        name,
    }
}
