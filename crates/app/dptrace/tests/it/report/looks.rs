//! Accessibility: contrast in the light and dark schemes, paper, the keyboard, names for a screen
//! reader.

use serde_json::{Value, json};

use super::browser::Browser;
use super::browsing::quiet;
use super::sample;

/// Minimum contrast of text (WCAG 2.2, success criterion 1.4.3).
const MIN_CONTRAST: f64 = 4.5;

/// Script that returns all visible text, with its contrast to the background: the relative
/// luminance is that of WCAG 2.2.
const CONTRASTS: &str = "(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = (it) => { for (; it; it = it.parentElement) { const back = parse(getComputedStyle(it).backgroundColor);
    if (back.length < 4 || back[3] > 0.99) return back; } return [255, 255, 255]; };
  const found = [];
  for (const it of document.body.querySelectorAll('*')) {
    const text = [...it.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join(' ').trim();
    const box = it.getBoundingClientRect();
    if (!text || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'title', 'OPTION'].includes(it.tagName) || box.width < 2 || it.disabled) continue;
    const style = getComputedStyle(it);
    if (style.visibility === 'hidden' || style.display === 'none') continue;
    const front = parse(it instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(front), light(behind(it))].sort((a, b) => b - a);
    found.push([(a + 0.05) / (b + 0.05), text.slice(0, 40)]);
  }
  return found;
})()";

#[track_caller]
fn is_readable(browser: &mut Browser, what: &str) {
    let found = browser.value(CONTRASTS);
    let found = found.as_array().unwrap();
    assert!(found.len() > 100, "{what}: {} texts", found.len());
    let faint: Vec<&Value> = found
        .iter()
        .filter(|it| it[0].as_f64().unwrap() < MIN_CONTRAST)
        .collect();
    assert!(faint.is_empty(), "{what}: {faint:#?}");
}

#[test]
fn the_page_is_readable_in_light_and_dark_mode_and_in_print() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = sample();
    let mut backs = Vec::new();
    for scheme in ["light", "dark"] {
        browser.medium("screen", scheme);
        browser.open(&dir.path().join("report.html"), 1400);
        is_readable(&mut browser, scheme);
        backs.push(browser.value("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(backs[0], backs[1]);
    // Paper is white for any scheme; controls that only work on a screen are not printed.
    let asked = json!({"printBackground": false, "transferMode": "ReturnAsStream"});
    browser.value("addEventListener('beforeprint', () => { window.paper = document.documentElement.className; }), 0");
    assert!(browser.call("Page.printToPDF", &asked)["stream"].is_string());
    assert_eq!(
        browser.value("[window.paper, document.documentElement.className]"),
        json!(["paper", ""])
    );
    browser.medium("print", "dark");
    browser.value("document.documentElement.className = 'paper'");
    is_readable(&mut browser, "paper");
    assert_eq!(
        browser.value("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    let hidden = "['nav', '.bar', '#heat-help', 'details:not([open])', '#connections-filter'].every((it) => !document.querySelector(it)?.checkVisibility())";
    assert_eq!(browser.value(hidden), true);
    quiet(&mut browser);
}

#[test]
fn the_keyboard_reaches_all_of_it_and_all_of_it_has_a_name() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = sample();
    browser.open(&dir.path().join("report.html"), 1400);
    browser.value(
        "window.all = [...document.querySelectorAll('a[href], button:not(:disabled), select, input, summary, [tabindex=\"0\"]')]
         .filter((it) => it.checkVisibility()), window.seen = new Set(), 0",
    );
    let count = browser.value("all.length").as_u64().unwrap();
    assert!(count > 40, "{count}");
    for _ in 0..=count {
        browser.key("Tab");
        browser.value("seen.add(document.activeElement), 0");
    }
    let missed =
        browser.value("all.filter((it) => !seen.has(it)).map((it) => it.outerHTML.slice(0, 120))");
    assert_eq!(missed, json!([]));
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes: Vec<&Value> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["ignored"] == false)
        .collect();
    let of = |role: &'static str| {
        nodes
            .iter()
            .filter(move |node| node["role"]["value"] == role)
    };
    for role in [
        "link",
        "button",
        "combobox",
        "searchbox",
        "application",
        "image",
        "table",
        "region",
        "DisclosureTriangle",
    ] {
        assert!(of(role).count() > 0, "there is no {role}");
        let nameless: Vec<_> = of(role)
            .filter(|node| node["name"]["value"].as_str().is_none_or(str::is_empty))
            .collect();
        assert!(nameless.is_empty(), "{role}: {nameless:#?}");
    }
}
