//! A terminal in tmux, in which the program runs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::{TIMEOUT, text};
use crate::common::kernel::{PROGRAM, Process};

/// A terminal in tmux, on a server of its own.
pub(super) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a shell command in a terminal of that size.
    pub(super) fn run(command: &str, dir: &Path, columns: u16, rows: u16) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let this = Self {
            socket: format!("dptrace-test-{}-{number}", std::process::id()),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let start = [
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-s",
            "it",
            "-x",
            &columns,
            "-y",
            &rows,
            command,
        ];
        let mut tmux = this.tmux(&start);
        // Variables that a test's environment may have, unlike a user's terminal.
        for unset in ["CI", "NO_COLOR", "TMUX", "COLUMNS", "LINES", "LC_ALL"] {
            tmux.env_remove(unset);
        }
        let done = tmux
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .current_dir(dir)
            .output()
            .expect("tmux");
        assert!(done.status.success(), "{}", text(&done.stderr));
        this
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = testkit::command("tmux");
        command
            .args(["-L", &self.socket])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    pub(super) fn keys(&self, keys: &[&str]) {
        let done = self
            .tmux(&["send-keys", "-t", "it"])
            .args(keys)
            .status()
            .expect("tmux");
        assert!(done.success());
    }

    /// Sends bytes, in hexadecimal digits, as a terminal does.
    pub(super) fn bytes(&self, text: &str) {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:x}")).collect();
        let done = self
            .tmux(&["send-keys", "-t", "it", "-H"])
            .args(bytes)
            .status()
            .expect("tmux");
        assert!(done.success());
    }

    /// Returns whether the program has asked the terminal for mouse reports.
    pub(super) fn has_mouse(&self) -> bool {
        let done = self
            .tmux(&[
                "display-message",
                "-p",
                "-t",
                "it",
                "#{mouse_standard_flag}#{mouse_sgr_flag}",
            ])
            .output();
        text(&done.expect("tmux").stdout).trim() == "11"
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        let done = self.tmux(&[
            "resize-window",
            "-t",
            "it",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
        assert!({ done }.status().expect("tmux").success());
    }

    pub(super) fn screen(&self) -> String {
        text(
            &self
                .tmux(&["capture-pane", "-p", "-t", "it"])
                .output()
                .expect("tmux")
                .stdout,
        )
    }

    /// Waits until the screen satisfies the predicate; returns it.
    #[track_caller]
    pub(super) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "{what} does not come:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server ends by itself when its only program does.
        let _ = self.tmux(&["kill-server"]).stderr(Stdio::null()).status();
    }
}

/// Returns a shell line that runs `top`, and then prints its status if the terminal's settings are
/// as before.
pub(super) fn in_shell(target: &Process, more: &str) -> String {
    let top = format!(
        "{PROGRAM} top -p {} --no-kernel --no-probes {more}",
        target.pid()
    );
    format!(
        "before=$(stty -g); {top}; status=$?; [ \"$before\" = \"$(stty -g)\" ] && echo given back $status; exec cat"
    )
}

/// Returns whether the terminal's settings are as before, and the status was 0.
pub(super) fn is_given_back(screen: &str) -> bool {
    screen.lines().any(|line| line.ends_with("given back 0"))
}
