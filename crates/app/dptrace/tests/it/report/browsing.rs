//! The page in a real browser, by pointer and keyboard.

use std::path::Path;
use std::process::Stdio;

use super::browser::Browser;
use super::{compare, data, lines, nanos, page, printed, sample};
use crate::common::kernel::{PROGRAM, Process};

/// Returns the texts of a column of a table.
fn column(browser: &mut Browser, rows: &str, column: usize) -> Vec<String> {
    let texts = browser.value(&format!(
        "[...document.querySelector('{rows}').rows].map(row => row.cells[{column}].textContent.trim())"
    ));
    texts
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

/// Returns the position in the window of a heat-map cell with a request.
fn cell_of_a_request(browser: &mut Browser) -> (f64, f64) {
    let at = browser.value(
        "(() => { const canvas = document.getElementById('heat'); canvas.scrollIntoView({behavior: 'instant', block: 'center'});
         const box = canvas.getBoundingClientRect(); const { drawn, view } = heat.state();
         const [, length, ] = data.heat.seen[0]; const end = data.heat.seen[0][0];
         const column = Math.floor(end / data.heat.column / drawn.columns) + 0.5;
         const row = Math.floor(Math.floor(Math.log2(length) * data.heat.per_doubling) / drawn.rows) + 0.5;
         return [box.x + drawn.x(column * drawn.columns * data.heat.column), box.y + drawn.y(row * drawn.rows)]; })()",
    );
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

#[track_caller]
pub(super) fn quiet(browser: &mut Browser) {
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
    let elsewhere: Vec<_> = browser
        .requests
        .iter()
        .filter(|url| !url.starts_with("file://"))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// Checks the tables of stages and of connections, by pointer and keyboard.
fn tables(browser: &mut Browser, dir: &Path) {
    let first = browser.value("data.groups[0].first");
    let printed_lines = lines(&printed(&["latency", "demo.trace", "--json"], dir));
    let whole = printed_lines
        .iter()
        .find(|line| line["first"] == first && line["stage"] == "whole")
        .unwrap();
    for (place, name) in [(4, "p50_ns"), (6, "p99_ns"), (8, "max_ns")] {
        let texts = column(browser, "#stages-rows", place);
        assert_eq!(
            texts.last().unwrap(),
            &screen::time(nanos(&whole[name])),
            "{name}"
        );
    }
    assert_eq!(
        column(browser, "#figures tbody", 5)[0],
        screen::time(nanos(&whole["p99_ns"]))
    );
    let all = column(browser, "#connections-rows", 2);
    browser.click("#connections th[data-sort=count] button");
    let falling: Vec<u64> = column(browser, "#connections-rows", 2)
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert!(
        falling.len() == all.len() && falling.is_sorted_by(|a, b| a >= b),
        "{falling:?}"
    );
    browser.click("#connections th[data-sort=count] button");
    let rising: Vec<u64> = column(browser, "#connections-rows", 2)
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert!(rising.is_sorted(), "{rising:?}");
    assert_eq!(
        browser.value(
            "document.querySelector('#connections th[data-sort=count]').getAttribute('aria-sort')"
        ),
        "ascending"
    );
    browser.click("#connections-filter");
    "cnode1"
        .chars()
        .for_each(|letter| browser.key(&letter.to_string()));
    let names = column(browser, "#connections-rows", 0);
    assert!(
        !names.is_empty()
            && names.len() < all.len()
            && names.iter().all(|name| name.contains("cnode1")),
        "{names:?}"
    );
    // The stages of a connection.
    browser.click("#connections-rows button");
    let chosen =
        browser.value("document.getElementById('curves-of').selectedOptions[0].textContent");
    assert!(chosen.as_str().unwrap().contains("cnode1"), "{chosen}");
}

/// Checks the heat map, by pointer and keyboard.
fn heat_map(browser: &mut Browser) {
    let at = cell_of_a_request(browser);
    browser.pointer("mouseMoved", at, false);
    let tip = browser
        .value("document.getElementById('heat-tip').hidden ? '' : document.getElementById('heat-tip').textContent");
    let slowest = browser.value("`${data.heat.seen[0][2]}: ${time(data.heat.seen[0][1])}`");
    assert!(
        tip.as_str().unwrap().contains(slowest.as_str().unwrap()),
        "{tip} has no {slowest}"
    );
    let is_whole = "(() => { const { view, whole } = heat.state(); return view.t0 === whole.t0 && view.t1 === whole.t1; })()";
    assert_eq!(browser.value(is_whole), true);
    let to = (at.0 + if at.0 > 700.0 { -250.0 } else { 250.0 }, at.1);
    browser.pointer("mousePressed", at, true);
    browser.pointer("mouseMoved", (f64::midpoint(at.0, to.0), at.1), true);
    browser.pointer("mouseMoved", to, true);
    browser.pointer("mouseReleased", to, false);
    assert_eq!(browser.value(is_whole), false, "a drag zooms");
    browser.click("#heat-reset");
    assert_eq!(browser.value(is_whole), true);
    browser.value("document.getElementById('heat').focus()");
    browser.key("ArrowLeft");
    let said = browser.value("document.getElementById('heat-said').textContent");
    assert!(said.as_str().unwrap().contains("request"), "{said}");
    browser.key("+");
    assert_eq!(browser.value(is_whole), false, "the keyboard zooms, too");
    browser.key("0");
    assert_eq!(browser.value(is_whole), true);
    browser.click("#heat-table summary");
    browser.wait("document.getElementById('heat-rows').rows.length > 5");
}

#[test]
fn a_browser_shows_it() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = sample();
    browser.open(&dir.path().join("report.html"), 1400);
    tables(&mut browser, dir.path());
    heat_map(&mut browser);
    quiet(&mut browser);
    // On a phone nothing is wider than the screen, except tables that scroll.
    browser.open(&dir.path().join("report.html"), 390);
    assert_eq!(
        browser
            .value("document.documentElement.scrollWidth <= document.documentElement.clientWidth"),
        true
    );
    quiet(&mut browser);
}

/// Replaces the sample's names with malicious ones of the same length.
fn hostile(dir: &Path) {
    let mut trace = std::fs::read(dir.join("demo.trace")).unwrap();
    let mut put = |name: &[u8], evil: &[u8]| {
        assert!(evil.len() <= name.len());
        let places: Vec<usize> = (0..trace.len() - name.len())
            .filter(|at| trace[*at..].starts_with(name))
            .collect();
        assert!(!places.is_empty(), "{}", String::from_utf8_lossy(name));
        for at in places {
            trace[at..at + evil.len()].copy_from_slice(evil);
        }
    };
    put(
        b"nqn.2016-06.io.spdk:cnode1",
        b"nqn.</script><img/src=x>\x1b",
    );
    put(
        b"nqn.2016-06.io.spdk:cnode2",
        b"nqn.<b/onclick=alert()>\"'&",
    );
    put(b"nqn.2016-06.io.spdk:cnode3", b"nqn.--><style>*{x:y}{{x}}");
    std::fs::write(dir.join("evil.trace"), trace).unwrap();
}

#[test]
fn hostile_names_do_nothing() {
    let dir = sample();
    hostile(dir.path());
    printed(&["report", "evil.trace", "-o", "report.html"], dir.path());
    printed(
        &[
            "report",
            "evil.trace",
            "--svg",
            "evil.svg",
            "--chart",
            "waterfall",
        ],
        dir.path(),
    );
    let page = page(dir.path());
    assert!(!page.contains("<img") && !page.contains("<b/") && !page.contains('\x1b'));
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "one of the data, one of the scripts"
    );
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(&dir.path().join("report.html"), 1400);
    let names = column(&mut browser, "#connections-rows", 0).join("\n");
    for name in [
        r"nqn.</script><img/src=x>\x1b",
        "nqn.<b/onclick=alert()>\"'&",
        "nqn.--><style>*{x:y}{{x}}",
    ] {
        assert!(names.contains(name), "{name} is no text of {names}");
    }
    let (scripts, images) = (
        browser.value("document.scripts.length"),
        browser.value("document.images.length"),
    );
    assert_eq!((scripts, images), (2.into(), 0.into()));
    browser.open(&dir.path().join("evil.svg"), 1400);
    assert_eq!(browser.value("document.documentElement.nodeName"), "svg");
    // A foreign program reads the picture.
    printed(&["report", "demo.trace", "--png", "chart.png"], dir.path());
    browser.open(&dir.path().join("chart.png"), 1400);
    assert_eq!(browser.value("document.images[0].naturalWidth"), 1680);
    quiet(&mut browser);
}

/// A target that a thread of higher priority keeps off its CPU, captured and reported.
#[test]
#[ignore = "deep truth: the preemptor must take the CPU from a request within 1 s"]
fn a_capture_shows_preemptors() {
    let Some(_alone) = crate::common::kernel::kernel() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    capture_with_preemptor(dir.path());
    printed(&["report", "it", "-o", "report.html"], dir.path());
    let page = page(dir.path());
    let data = data(&page);
    compare(&data, "it", dir.path());
    assert!(
        page.len() < 1 << 20 && data["kernel"] == true,
        "{} bytes",
        page.len()
    );
    let (_, who) = page.split_once("id=\"who\"").expect("who ran instead");
    assert!(
        who.split_once("</section>")
            .unwrap()
            .0
            .contains("preemptor_"),
        "{who}"
    );
    check_verdict(&page, dir.path());
    // The largest share may be another's on a machine where other processes run.
    let spent = page
        .split_once("class=\"causes\"")
        .expect("what took the time")
        .1
        .split_once("</table>")
        .unwrap()
        .0;
    assert!(spent.contains("class=\"preempted\""), "{spent}");
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(&dir.path().join("report.html"), 1400);
    heat_map(&mut browser);
    check_strip(&mut browser);
    assert!(
        browser
            .value("document.querySelectorAll('details.request .fall rect.preempted').length")
            .as_u64()
            > Some(0)
    );
    quiet(&mut browser);
}

/// Checks the strip of a thread, at its longest absence.
#[track_caller]
fn check_strip(browser: &mut Browser) {
    let at = browser.value(
        "(() => { const box = document.getElementById('heat').getBoundingClientRect(); const { drawn } = heat.state();
         let at = 0, longest = [0, 0, 0]; for (const [lane, after, length] of data.lanes.taken) {
         at += after; if (length > longest[2]) longest = [lane, at + length / 2, length]; }
         return [box.x + drawn.x(longest[1]), box.y + drawn.size.lanesAt + longest[0] * 18 + 7]; })()",
    );
    browser.pointer(
        "mouseMoved",
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap()),
        false,
    );
    let tip = browser.value("document.getElementById('heat-tip').textContent");
    assert!(
        tip.as_str().unwrap().contains(" on CPU ") || tip.as_str().unwrap().contains("stopped"),
        "{tip}"
    );
}

/// Checks that the page's verdict is the summary of `timeline`.
#[track_caller]
fn check_verdict(page: &str, dir: &Path) {
    let sentences = lines(&printed(&["timeline", "it", "--json"], dir));
    let sentence = sentences.iter().find(|line| line["summary"] == 1).unwrap()["sentence"]
        .as_str()
        .unwrap();
    // The first letter may differ. A sentence about an absent reactor may come first: other
    // processes may take its CPU for that long.
    let verdict = page
        .split_once("id=\"verdict\"")
        .unwrap()
        .1
        .split_once("</section>")
        .unwrap()
        .0;
    assert!(
        verdict.contains(&format!("{}.</p>", &sentence.replace('>', "&gt;")[1..])),
        "{sentence}: {verdict}"
    );
}

/// Captures a target that a thread of higher priority keeps off its CPU, to the folder `it`.
fn capture_with_preemptor(dir: &Path) {
    let mut command = testkit::command(PROGRAM);
    command.args([
        "demo-target",
        "--inject",
        "preempt",
        "--inject-every",
        "20ms",
        "--rate",
        "5000",
        "--for",
        "2m",
    ]);
    let mut target = Process::start(
        command
            .args(["--app", "reported"])
            .current_dir(dir)
            .stdout(Stdio::null()),
    );
    target.wait_for("trace file");
    let pid = target.pid().to_string();
    printed(
        &[
            "capture",
            "-p",
            &pid,
            "--for",
            "1s",
            "--no-probes",
            "-o",
            "it",
        ],
        dir,
    );
    target.signal("INT");
    target.end();
}
