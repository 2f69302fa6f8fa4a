//! Zoom by wheel, drag and keys, and links to a view, in a real browser.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{page, printed, sample};

const VIEW: &str = "(() => { const { t0, t1 } = heat.state().view; return [t0, t1]; })()";

fn view(browser: &mut Browser) -> (f64, f64) {
    let view = browser.value(VIEW);
    (view[0].as_f64().unwrap(), view[1].as_f64().unwrap())
}

/// Turns the wheel over the middle of the heat map; `modifiers` are those of the protocol.
fn wheel(browser: &mut Browser, (x, y): (f64, f64), modifiers: u32) {
    let at = browser.value(
        "(() => { const box = document.getElementById('heat').getBoundingClientRect(); return [box.x + box.width / 2, box.y + 100]; })()",
    );
    let event = json!({"type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": x, "deltaY": y, "modifiers": modifiers});
    browser.call("Input.dispatchMouseEvent", &event);
}

const CTRL: u32 = 2;
const SHIFT: u32 = 8;

#[test]
fn a_wheel_zooms_only_with_a_modifier_and_the_address_keeps_the_view() {
    let dir = sample();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let file = dir.path().join("report.html");
    browser.open(&file, 1280);
    browser.value(
        "document.getElementById('heat').scrollIntoView({behavior: 'instant', block: 'center'})",
    );
    let (whole, before) = (view(&mut browser), browser.value("scrollY"));
    wheel(&mut browser, (0.0, 120.0), 0);
    browser.wait(&format!("scrollY !== {before}"));
    assert_eq!(view(&mut browser), whole, "the page scrolled");
    let before = browser.value("scrollY");
    wheel(&mut browser, (0.0, -120.0), CTRL);
    browser.wait("!heat.isWhole()");
    assert_eq!(browser.value("scrollY"), before, "the page stayed");
    let zoomed = view(&mut browser);
    assert!(zoomed.0 > whole.0 && zoomed.1 < whole.1, "{zoomed:?}");
    wheel(&mut browser, (0.0, 200.0), SHIFT);
    browser.wait(&format!("heat.state().view.t0 > {}", zoomed.0));
    let moved = view(&mut browser);
    assert!(((moved.1 - moved.0) - (zoomed.1 - zoomed.0)).abs() < 1.0);
    // The link restores it.
    // The address of the view before may come first.
    browser.wait(&format!(
        "location.hash.startsWith('#view={},')",
        moved.0.round()
    ));
    let hash = browser.value("location.hash");
    let again = "document.title = 'before'; location.reload(); true";
    browser.value(again);
    browser.wait("document.title !== 'before' && document.readyState === 'complete'");
    assert_eq!(browser.value("location.hash"), hash);
    let restored = view(&mut browser);
    assert!(
        (restored.0 - moved.0).abs() < 2.0 && (restored.1 - moved.1).abs() < 2.0,
        "{restored:?} {moved:?}"
    );
    browser.value("document.getElementById('heat').focus({preventScroll: true})");
    browser.key("Escape");
    assert_eq!(view(&mut browser), whole);
    browser.wait("location.hash === ''");
    for (key, of) in [("w", 0.5), ("d", 0.5), ("a", 0.5), ("s", 1.0)] {
        browser.key(key);
        let now = view(&mut browser);
        let share = (now.1 - now.0) / (whole.1 - whole.0);
        assert!((share - of).abs() < 0.01, "{key}: {share}");
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn an_open_request_is_in_the_address_and_hostile_addresses_do_no_harm() {
    let dir = sample();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(&dir.path().join("report.html"), 1280);
    browser.click("#request-5 > summary");
    browser.wait("location.hash === '#request=5'");
    browser.value("location.hash = '#view=0,1e99,-1e99,1e99&request=6'; true");
    browser.wait("document.getElementById('request-6').open");
    assert_eq!(
        browser.value("heat.isWhole()"),
        true,
        "the range is limited"
    );
    for hostile in [
        "%",
        "%E0%A4%A",
        "view=NaN,Infinity,0,1",
        "view=5,1,2,3",
        "view=,,,",
        "request=<img src=x>",
        "request=99999999999999",
        "view=0x10,1e400,1,2&request=__proto__",
    ] {
        let set = format!("location.hash = {hostile:?}; new Promise(done => setTimeout(done, 50))");
        browser.value(&set);
        assert_eq!(browser.value("heat.isWhole()"), true, "{hostile}");
    }
    browser.value(
        "location.hash = '#view=-5,1000,1e9,1e10'; new Promise(done => setTimeout(done, 50))",
    );
    let state = browser.value("heat.state().view");
    let number = |name: &str| state[name].as_f64().unwrap();
    assert!(number("t0") >= 0.0 && number("t0") < number("t1") && number("r0") < number("r1"));
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn a_page_names_its_trace_for_perfetto_and_its_tables_fit() {
    let dir = sample();
    let write = |trace: &str| {
        let args = [
            "report",
            "demo.trace",
            "-o",
            "report.html",
            "--perfetto",
            trace,
        ];
        printed(&args, dir.path());
        page(dir.path())
    };
    let link = r#"<a href="./slow%20one.pftrace" download>slow one.pftrace</a>"#;
    assert!(write("slow one.pftrace").contains(link));
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("x.pftrace");
    let other = write(path.to_str().unwrap());
    assert!(other.contains("ui.perfetto.dev") && !other.contains("x.pftrace\" download"));
    let Some(mut browser) = Browser::start() else {
        return;
    };
    write("beside.pftrace");
    browser.open(&dir.path().join("report.html"), 1280);
    let address = browser.value("document.querySelector('#perfetto a').href");
    assert!(
        address.as_str().unwrap().ends_with("/beside.pftrace"),
        "{address}"
    );
    let cut = browser.value(
        "[...document.querySelectorAll('.wide')].filter(it => it.scrollWidth > it.clientWidth).map(it => it.getAttribute('aria-label'))",
    );
    assert_eq!(cut, Value::Array(Vec::new()));
}
