//! Any names and numbers as the data of a report: its page and its charts are well formed, have no other elements than those of a
//! report with plain names, and the names arrive as text.
#![no_main]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use dptrace_fuzz::report::{elements, made_of};
use dptrace_fuzz::within_more;
use libfuzzer_sys::fuzz_target;
use page::{Report, chart};

/// A page and its charts are at most that large, and take some times as much memory while they are made.
const MAX_PAGE_BYTES: usize = 1 << 20;

fn documents(report: &Report) -> Vec<String> {
    let mut charts = vec![chart::heat(report), chart::percentiles(report)];
    charts.extend(
        report
            .waterfalls
            .first()
            .map(|it| chart::waterfall(report, it)),
    );
    std::iter::once(page::page(report))
        .chain(charts.iter().map(chart::Chart::svg))
        .collect()
}

/// The elements of reports with plain names, of which some have all parts.
fn plain() -> &'static BTreeSet<String> {
    static PLAIN: OnceLock<BTreeSet<String>> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let of = |seed: u8| {
            let numbers: Vec<u8> = (0..4_093_u32)
                .map(|n| (n.wrapping_mul(n + u32::from(seed)) >> 3) as u8 ^ seed)
                .collect();
            documents(&made_of("name", &numbers))
                .iter()
                .flat_map(|text| elements(text))
                .collect::<Vec<_>>()
        };
        (0..64).flat_map(of).collect()
    })
}

fuzz_target!(|data: &[u8]| {
    let (numbers, text) = data.split_at(data.len().min(256));
    let text = String::from_utf8_lossy(text);
    plain();
    let made = within_more(data.len(), 64, 8 * MAX_PAGE_BYTES, || {
        let report = made_of(&text, numbers);
        documents(&report)
    });
    for document in &made {
        assert!(document.len() < MAX_PAGE_BYTES, "{} bytes", document.len());
        let found = elements(document);
        let strange: Vec<_> = found.difference(plain()).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
    let data = made[0]
        .split_once("id=\"data\">")
        .expect("its data")
        .1
        .split_once("</script>")
        .expect("their end")
        .0;
    assert!(!data.contains(['<', '>', '&']));
    let data: serde_json::Value = serde_json::from_str(data).expect("the data is JSON");
    for connection in data["connections"].as_array().expect("a list") {
        assert!(connection["name"].is_string());
    }
});
