//! The program on a terminal of a given width.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Timeout for anything that is sure to end.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Opens a terminal with this number of columns; returns our end and the program's.
pub(crate) fn open(columns: u16) -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("unlocked");
    tcsetwinsize(
        &terminal,
        Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
    .expect("a size");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let other_end = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().expect("a name of ASCII"))
        .expect("opened");
    (File::from(terminal), other_end)
}

/// Returns what the program prints on a terminal of this width, and whether it succeeded. Nobody
/// reads its standard error, a pipe.
pub(crate) fn on_terminal<S: AsRef<OsStr>>(
    columns: u16,
    environment: &[(&str, &str)],
    args: &[S],
) -> (String, bool) {
    on_terminal_in(Path::new("."), columns, environment, args)
}

/// Does the same in this folder.
pub(crate) fn on_terminal_in<S: AsRef<OsStr>>(
    folder: &Path,
    columns: u16,
    environment: &[(&str, &str)],
    args: &[S],
) -> (String, bool) {
    let (terminal, other_end) = open(columns);
    let mut command = command(environment, args);
    command
        .current_dir(folder)
        .stdout(other_end)
        .stderr(Stdio::null());
    finish(terminal, command)
}

/// Returns a command for the program, with the environment variables that concern terminals set as
/// for a user.
pub(crate) fn command<S: AsRef<OsStr>>(environment: &[(&str, &str)], args: &[S]) -> Command {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    // `anstream` assumes that `CI` shows colours even if TERM is dumb.
    for unset in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "CI",
        "COLUMNS",
        "LC_ALL",
        "LC_CTYPE",
    ] {
        command.env_remove(unset);
    }
    command
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .envs(environment.iter().copied());
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the command; returns what arrives at our end of the terminal, and whether it succeeded.
pub(crate) fn finish(mut terminal: File, mut command: Command) -> (String, bool) {
    let mut child = command.spawn().expect("started");
    // The command holds the terminal's other end: reading would never end.
    drop(command);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Ends with EIO when the other end is closed (pty(7)).
        let _ = terminal.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    let bytes = receive
        .recv_timeout(TIMEOUT)
        .inspect_err(|_| drop(child.kill()))
        .expect("it ends");
    let succeeded = child.wait().expect("waited for").success();
    // The terminal turns line ends into these (termios(3), ONLCR).
    (
        String::from_utf8(bytes)
            .expect("output is UTF-8")
            .replace("\r\n", "\n"),
        succeeded,
    )
}

/// Returns the width of the longest line. All characters in these tests are one column wide.
pub(crate) fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| without_styles(line).chars().count())
        .max()
        .unwrap_or(0)
}

/// Returns the text without styles (ECMA-48, SGR).
pub(crate) fn without_styles(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| {
        plain + piece.split_once('m').map_or(piece, |(_, rest)| rest)
    })
}
