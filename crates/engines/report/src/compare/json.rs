//! The comparison as JSON: a line for each kind of request.

use ::text::json::{begin, quoted};
use page::{ComparedStage, ComparedTime, ComparedTimes, Comparison};

/// Formats a line for each kind that both captures have.
pub fn json(comparison: &Comparison) -> String {
    let [a, b] = &comparison.sides;
    let kinds = comparison.kinds.iter().zip(&comparison.sentences);
    let line = |(kind, sentence): (&page::ComparedKind, &String)| {
        let stages: Vec<String> = kind.stages.iter().map(stage).collect();
        let cause = |it: &page::ComparedCause| {
            format!(
                "{{\"name\":{},\"took\":{}}}",
                quoted(&it.name),
                time(&it.took)
            )
        };
        let causes: Vec<String> = kind.causes.iter().map(cause).collect();
        format!(
            "{},\"kind\":{},\"a\":{},\"b\":{},\"span_ns\":[{},{}],\"whole\":{{{}}},\
             \"stages\":[{}],\"causes\":[{}],\"sentence\":{}}}\n",
            begin("timeline.compared"),
            quoted(&kind.name),
            quoted(&a.title),
            quoted(&b.title),
            a.span,
            b.span,
            times(&kind.whole),
            stages.join(","),
            causes.join(","),
            quoted(sentence)
        )
    };
    kinds.map(line).collect()
}

fn stage(stage: &ComparedStage) -> String {
    format!(
        "{{\"from\":{},\"to\":{},{}}}",
        quoted(&stage.from),
        quoted(&stage.to),
        times(&stage.times)
    )
}

fn times(times: &ComparedTimes) -> String {
    let [a, b] = times.counts;
    format!(
        "\"counts\":[{a},{b}],\"p50\":{},\"p99\":{},\"mean\":{}",
        time(&times.median),
        time(&times.p99),
        time(&times.mean)
    )
}

fn time(it: &ComparedTime) -> String {
    let [a, b] = it
        .values
        .map(|value| value.map_or_else(|| "null".to_owned(), |nanos| nanos.to_string()));
    format!(
        "{{\"a_ns\":{a},\"b_ns\":{b},\"difference\":\"{}\"}}",
        it.difference.key()
    )
}
