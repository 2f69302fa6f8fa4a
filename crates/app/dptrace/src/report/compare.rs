//! Two captures compared: as text, as JSON or as one HTML file.

use console::output::{self, Output};
use console::terminal;
use errors::usage;

use super::{Form, ReportArgs, Source, input};

/// Prints or writes the comparison of two captures or traces.
pub(super) fn run(args: &ReportArgs, form: Form) -> anyhow::Result<()> {
    let [a, b] = args.files.as_slice() else {
        return Err(usage(
            "give one capture or trace, or two to compare: only --parquet alone takes more",
        ));
    };
    if let Some(option) = inapplicable(args) {
        return Err(usage(format!(
            "{option} is not for a comparison of two captures: leave it out, or give one capture"
        )));
    }
    let (a, b) = (input::capture_or_trace(a)?, input::capture_or_trace(b)?);
    let written = args.output.as_deref();
    let source = |path| Source {
        path,
        objects: &args.objects,
        verdict: &args.verdict,
    };
    source(&a).access(written)?;
    let access = source(&b).access(written)?;
    let (objects, observer) = (args.objects.sources(), terminal::observer());
    let compared = report::compare::compare([&a, &b], &objects, &args.verdict.by, &observer)?;
    let text = match form {
        Form::Page => page::comparison_page(&compared),
        _ if args.explanations.json => report::compare::json(&compared),
        _ => report::compare::text(&compared, output::screen(written)),
    };
    let mut output = Output::whole(written, access)?;
    output.buffer.extend_from_slice(text.as_bytes());
    Ok(output.finish()?)
}

/// Returns the first given option that needs one capture.
fn inapplicable(args: &ReportArgs) -> Option<&'static str> {
    let given = [
        ("--slowest", args.verdict.slowest.is_some()),
        ("--all", args.explanations.all),
        ("--over", args.explanations.over.is_some()),
        ("--ndjson", args.explanations.ndjson),
        ("--svg", args.svg.is_some()),
        ("--png", args.png.is_some()),
        ("--perfetto", args.perfetto.perfetto.is_some()),
        ("--parquet", args.tables.parquet.is_some()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given);
    given.map(|(name, _)| name)
}
