//! The screen of `top` in a terminal, and what its keys do.

use std::path::Path;

use super::terminal::{Terminal, in_shell, is_given_back};
use super::{dir, iops, pinned_target, target};
use crate::common::kernel::{has_two_cpus, kernel, needs};
use serde_json::Value;

/// Opening the tab is what attaches to the CPUs.
#[test]
fn the_tab_of_cpus_attaches_when_it_is_opened() {
    let Some(_alone) = kernel() else { return };
    if !needs("tmux") || !needs("taskset") || !has_two_cpus() {
        return;
    }
    let dir = dir();
    let target = pinned_target(&["--rate", "500"], dir.path());
    let command = in_shell(&target, "").replace(" --no-kernel", "");
    let terminal = Terminal::run(&command, dir.path(), 120, 30);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["4"]);
    let screen = terminal.wait("the CPUs", |screen| {
        screen.contains("1 CPU of pollers; most was taken of CPU 1")
    });
    assert!(
        screen.contains("WORST VICTIM") && screen.contains(" owner") && screen.contains("TAKEN"),
        "{screen}"
    );
    terminal.keys(&["Enter"]);
    let screen = terminal.wait("the details", |screen| {
        screen.contains("intruders") && screen.contains("longest other")
    });
    assert!(screen.contains("CPU 1"), "{screen}");
    terminal.keys(&["Escape", "?"]);
    terminal.wait("the help", |screen| {
        screen.contains("CPUs are audited once their tab has been opened")
    });
    terminal.keys(&["Escape", "q"]);
    terminal.wait("the end", is_given_back);
    // If nothing may be attached, the tab shows the reason.
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["4"]);
    terminal.wait("the reason", |screen| {
        screen.contains("nothing here: --no-kernel was given")
    });
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
}

/// Parses `12` or `1.23k` as a number.
fn number(text: &str) -> f64 {
    let scale = if text.ends_with('k') { 1000.0 } else { 1.0 };
    text.trim_end_matches('k')
        .parse::<f64>()
        .map_or(f64::NAN, |value| value * scale)
}

#[test]
fn a_person_looks_around() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "1500", "--connections", "8"], dir.path());
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 80, 24);
    let screen = terminal.wait("a second", |screen| {
        screen.contains(" IOPS, ") && !screen.contains("; 0 IOPS")
    });
    assert!(
        screen.contains("SUBSYSTEM") && screen.contains("P99") && screen.contains("q quit"),
        "{screen}"
    );
    // Opens another tab, and returns.
    terminal.keys(&["3"]);
    terminal.wait("the heat map", |screen| {
        screen.contains("how long whole request took") && screen.contains(" now")
    });
    terminal.keys(&["Left", "Left"]);
    terminal.wait("the connections", |screen| screen.contains("SUBSYSTEM"));
    terminal.keys(&["?"]);
    terminal.wait("the help", |screen| screen.contains("another tab"));
    terminal.keys(&["Escape"]);
    check_written(&terminal, dir.path());
    // A filter that nothing passes, then one that some rows pass.
    terminal.keys(&["/", "n", "o", "n", "e"]);
    terminal.wait("nothing", |screen| {
        screen.contains("nothing matches the filter")
    });
    terminal.keys(&["Escape"]);
    terminal.wait("all", |screen| {
        !screen.contains("nothing matches the filter")
    });
    terminal.keys(&["Enter"]);
    terminal.wait("details", |screen| {
        screen.contains("the slowest requests") || screen.contains("no request ended")
    });
    terminal.keys(&["Escape", "Space"]);
    check_sizes(&terminal);
    check_mouse(&terminal);
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
    assert!(!terminal.has_mouse());
}

/// The list of processes is there before the first one, and `p` opens it again.
#[test]
fn a_process_is_chosen_from_a_list() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let targets = [(); 2].map(|()| target(&["--rate", "300"], dir.path()));
    let pids = [0, 1].map(|at: usize| targets[at].pid().to_string());
    let command = in_shell(&targets[0], "").replace(&pids[0], &pids.join(","));
    let terminal = Terminal::run(&command, dir.path(), 80, 24);
    let is_list = |screen: &str| {
        screen.contains("which process?")
            && pids.iter().all(|pid| {
                let row = screen
                    .lines()
                    .find(|line| line.trim_start().starts_with(pid));
                row.is_some_and(|row| row.contains(" SPDK "))
            })
    };
    terminal.wait("the list", is_list);
    for pid in [&pids[1], &pids[0]] {
        terminal.keys(&[pid]);
        terminal.wait("one of them", |screen| {
            let rows = |pid: &str| screen.contains(&format!(" {pid} "));
            pids.iter().filter(|pid| rows(pid)).count() == 1 && rows(pid)
        });
        terminal.keys(&["Enter"]);
        let is_shown = |screen: &str| {
            screen.contains(&format!("[{pid}]  second ")) && screen.contains(" IOPS, ")
        };
        terminal.wait("the process", is_shown);
        terminal.keys(&["p"]);
        terminal.wait("the list again", is_list);
    }
    terminal.keys(&["Escape"]);
    terminal.wait("the process as before", |screen| {
        screen.contains(&format!("[{}]  second ", pids[0]))
    });
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
}

/// SPDK's pollers have their rates, in the layouts of several versions; without them the tab says
/// why it is empty.
#[test]
fn the_pollers_of_spdk_have_their_rates() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 120, 30);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["5"]);
    // Idle runs while it waits, and a busy one for each event.
    let rows = |screen: &str| {
        let of_group = screen
            .lines()
            .filter(|line| line.starts_with("nvmf_poll_group_poll"));
        of_group.map(str::to_owned).collect::<Vec<_>>()
    };
    let runs = |row: &str, reactor: &str| {
        let (_, rest) = row.split_once(reactor)?;
        Some(number(rest.split_whitespace().next()?))
    };
    let has_rates = |screen: &str| {
        let rows = rows(screen);
        ["reactor_0", "reactor_1"].iter().all(|reactor| {
            rows.iter()
                .filter_map(|row| runs(row, reactor))
                .any(|runs| runs > 100.0)
        })
    };
    let screen = terminal.wait("their rates", has_rates);
    assert!(
        screen.contains("nvmf_tgt_accept") && screen.contains("demo_timed"),
        "{screen}"
    );
    assert!(
        screen.contains("6 pollers; most work: nvmf_poll_group_poll"),
        "{screen}"
    );
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
}

/// Freezes the screen, and checks that the frozen screen is what gets written.
#[track_caller]
fn check_written(terminal: &Terminal, dir: &Path) {
    terminal.keys(&["Space"]);
    terminal.wait("the standstill", |screen| screen.contains("FROZEN"));
    terminal.keys(&["w"]);
    let screen = terminal.wait("the file", |screen| screen.contains("written: "));
    let name = screen
        .split("written: ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a name");
    let written = std::fs::read_to_string(dir.join(name)).expect("written");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let shown = screen
        .split(" IOPS, ")
        .next()
        .and_then(|before| before.split(' ').next_back())
        .expect("a number");
    assert!(
        (number(shown) / iops(&written) - 1.0).abs() < 0.05,
        "{shown}: {}",
        iops(&written)
    );
}

/// Checks that the screen fills the terminal at other sizes.
#[track_caller]
fn check_sizes(terminal: &Terminal) {
    for (columns, rows) in [(50, 12), (120, 40)] {
        terminal.resize(columns, rows);
        let is_whole = |screen: &str| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == usize::from(rows) && lines[usize::from(rows) - 1].starts_with("? help")
        };
        let screen = terminal.wait("the other size", is_whole);
        assert!(
            screen
                .lines()
                .all(|line| line.chars().count() <= usize::from(columns)),
            "{screen}"
        );
    }
}

/// Checks that `m` gives the mouse to the terminal, and takes it again.
#[track_caller]
fn check_mouse(terminal: &Terminal) {
    assert!(terminal.has_mouse());
    terminal.keys(&["m"]);
    terminal.wait("the terminal's mouse", |screen| {
        screen.contains("the mouse is the terminal's")
    });
    assert!(!terminal.has_mouse());
    terminal.keys(&["m"]);
    terminal.wait("the mouse", |screen| {
        screen.contains("m gives the mouse back")
    });
    assert!(terminal.has_mouse());
    // The headline of the order turns it round.
    let screen = terminal.screen();
    let mut lines = screen.lines().enumerate();
    let (y, x) = lines
        .find_map(|(y, line)| {
            line.starts_with("SUBSYSTEM")
                .then_some((y, line.find("P99")?))
        })
        .expect("a headline");
    let first_row = |screen: &str| screen.lines().nth(y + 1).map(str::to_owned);
    terminal.bytes(&format!("\x1b[<0;{};{}M", x + 1, y + 1));
    terminal.wait("the other order", |now| {
        first_row(now) != first_row(&screen)
    });
    // A tab is selected.
    terminal.bytes("\x1b[<0;38;2M\x1b[<0;38;2m");
    terminal.wait("the heat map", |screen| {
        screen.contains("how long whole request took")
    });
    terminal.bytes("\x1b[<65;10;20M");
}

#[test]
fn the_end_of_the_target_is_shown() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    target.signal("INT");
    target.end();
    let screen = terminal.wait("the end", |screen| screen.contains("the process has ended"));
    assert!(
        screen.contains("SUBSYSTEM"),
        "what was there stays: {screen}"
    );
    terminal.keys(&["x"]);
    terminal.wait("the shell", is_given_back);
}

/// Ctrl-Z stops the program, and the shell has its terminal until it continues it.
#[test]
fn the_shell_has_the_terminal_while_it_is_stopped() {
    if !needs("tmux") || !needs("bash") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let script = in_shell(&target, "").replacen(
        "; status=$?",
        "; [ \"$before\" = \"$(stty -g)\" ] && echo stopped $?; read line; fg; status=$?",
        1,
    );
    std::fs::write(dir.path().join("script"), format!("set -m; {script}")).expect("written");
    let terminal = Terminal::run("bash script", dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["C-z"]);
    terminal.wait("the shell", |screen| {
        screen.lines().any(|line| line == "stopped 0") && !screen.contains(" IOPS, ")
    });
    assert!(!terminal.has_mouse());
    terminal.keys(&["Enter"]);
    terminal.wait("the screen again", |screen| screen.contains(" IOPS, "));
    assert!(terminal.has_mouse());
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let command = in_shell(&target, "").replacen("before=", "echo $$ > shell; before=", 1);
    let terminal = Terminal::run(&command, dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    let shell = std::fs::read_to_string(dir.path().join("shell")).expect("its number");
    let children = format!("/proc/{0}/task/{0}/children", shell.trim());
    let child = std::fs::read_to_string(children).expect("the shell lives");
    let done = testkit::command("kill")
        .args(["-TERM", child.trim()])
        .status()
        .expect("kill");
    assert!(done.success());
    terminal.wait("the shell", is_given_back);
}
