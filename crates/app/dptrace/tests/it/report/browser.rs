//! A headless browser, driven over the DevTools protocol through a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Timeout for any machine.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Program names of browsers that know the protocol.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Shell command that lifts the limit on address space: a browser reserves more than CI allows a
/// test.
const RAISE: &str = "ulimit -S -v unlimited";

pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Errors of the page.
    pub(crate) complaints: Vec<Value>,
    /// URLs that the page requested from the network.
    pub(crate) requests: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser. `None` if none is installed; with `DPTRACE_REQUIRE_BROWSER=1` that is a
    /// failure.
    pub(crate) fn start() -> Option<Self> {
        let is_there = |name: &&&str| {
            let mut version = testkit::command("sh");
            version.args(["-c", &format!(r#"{RAISE}; exec "$0" --version"#), name]);
            version
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let Some(name) = NAMES.iter().find(is_there) else {
            assert!(
                std::env::var_os("DPTRACE_REQUIRE_BROWSER").is_none(),
                "none of {NAMES:?} is installed"
            );
            testkit::kernel::skip_if_permitted(
                "browser",
                &format!("none of {NAMES:?} is installed"),
            );
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut child = launch(name, profile.path());
        let (commands, answers) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                if serde_json::from_slice(&message)
                    .map_or(true, |message| sender.send(message).is_err())
                {
                    break;
                }
            }
        });
        let (complaints, requests) = (Vec::new(), Vec::new());
        let (session, last) = (None, 0);
        let mut it = Self {
            child,
            commands,
            answers: receiver,
            session,
            last,
            complaints,
            requests,
            _profile: profile,
        };
        it.attach();
        Some(it)
    }

    fn attach(&mut self) {
        let began = Instant::now();
        let page = loop {
            let targets = self.call("Target.getTargets", &json!({}));
            let targets = targets["targetInfos"].as_array().unwrap().clone();
            if let Some(page) = targets.into_iter().find(|target| target["type"] == "page") {
                break page;
            }
            assert!(began.elapsed() < TIMEOUT, "the browser has no page");
            std::thread::sleep(Duration::from_millis(50));
        };
        let attached = self.call(
            "Target.attachToTarget",
            &json!({"targetId": page["targetId"], "flatten": true}),
        );
        self.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
        self.medium("screen", "light");
    }

    /// Calls a method; returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == self.last {
                assert!(
                    answer.get("error").is_none(),
                    "{method}: {}",
                    answer["error"]
                );
                return answer["result"].clone();
            }
        }
    }

    /// Returns the next message; records the page's errors and requests in it.
    fn next(&mut self) -> Value {
        let message = self
            .answers
            .recv_timeout(TIMEOUT)
            .expect("the browser answers");
        match message["method"].as_str() {
            Some(
                "Runtime.exceptionThrown"
                | "Runtime.consoleAPICalled"
                | "Log.entryAdded"
                | "Page.javascriptDialogOpening",
            ) => {
                self.complaints.push(message["params"].clone());
            }
            Some("Network.requestWillBeSent") => {
                self.requests.push(
                    message["params"]["request"]["url"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
            _ => {}
        }
        message
    }

    /// Opens a file in a window of that width, and waits until it is drawn.
    #[track_caller]
    pub(crate) fn open(&mut self, file: &Path, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.call(
            "Page.navigate",
            &json!({"url": format!("file://{}", file.display())}),
        );
        let name = file.file_name().unwrap().to_str().unwrap();
        self.wait(&format!(
            "document.readyState === 'complete' && location.pathname.endsWith('/{name}')"
        ));
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &asked);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != true {
            assert!(
                began.elapsed() < TIMEOUT,
                "it does not become true: {expression}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Moves the pointer to this point of the window, with or without its button pressed.
    pub(crate) fn pointer(&mut self, kind: &str, (x, y): (f64, f64), is_pressed: bool) {
        let (button, buttons) = if is_pressed || kind != "mouseMoved" {
            ("left", 1)
        } else {
            ("none", 0)
        };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Clicks in the middle of an element.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        let at = self.value(&format!(
            "(() => {{ const it = document.querySelector({selector:?}); it.scrollIntoView({{behavior: 'instant', block: 'center'}});
             const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        let at = (at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
        self.pointer("mousePressed", at, true);
        self.pointer("mouseReleased", at, false);
    }

    /// Presses a key, named as in keyboard events.
    pub(crate) fn key(&mut self, key: &str) {
        let text = if key.len() == 1 { key } else { "" };
        // The browser recognizes keys that move the focus by their codes.
        let code = if key == "Tab" { 9 } else { 0 };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            let event =
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Selects light or dark, and screen or paper. Animations are off, so that elements stay where
    /// they were found.
    pub(crate) fn medium(&mut self, medium: &str, scheme: &str) {
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"media": medium, "features": features}),
        );
    }
}

/// Starts a browser with a profile, without a window. It speaks the protocol on its standard input
/// and output.
fn launch(name: &str, profile: &Path) -> Child {
    let mut command = testkit::command("sh");
    // The protocol's pipes are descriptors 3 and 4.
    command.args([
        "-c",
        &format!(r#"{RAISE}; exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#),
        "sh",
        name,
    ]);
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--remote-debugging-pipe",
    ]);
    command
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("about:blank");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own children end when it does.
        testkit::end(&mut self.child);
    }
}
