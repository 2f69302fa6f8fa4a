//! Messages about processes that do not exist, or are too many.

use anyhow::anyhow;
use text::{printable, shell};

use super::Role;
use super::choice::{Choice, marks};
use super::find::{called_in_kernel, founders, near};

/// Limit on listed processes.
pub(crate) const MAX_LISTED: usize = 10;

/// Returns lines for some of the processes, each with its number, what separates it from the
/// others, and its command line.
fn lines(pids: &[u32], role: Role) -> String {
    let line = |&pid: &u32| match host::proc::shown_command_line(pid) {
        none if none.is_empty() => format!("\n  {pid:>7}  (no such process)"),
        command => format!("\n  {pid:>7}  {}{command}", marks(pid, pids, role)),
    };
    let shown: String = pids.iter().take(MAX_LISTED).map(line).collect();
    let more = pids.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        format!("{shown}\n  and {more} more")
    } else {
        shown
    }
}

/// Formats the note that all processes of a name are taken. If they belong to several servers, it
/// lists the processes that have started the others.
pub(crate) fn several(name: &str, pids: &[u32], verb: &str, role: Role) -> String {
    let (name, count) = (printable::text(name.as_bytes()), pids.len());
    let note =
        format!("{count} processes are called {name}, and all are {verb} (-p PID takes one)");
    match founders(pids).as_slice() {
        [] | [_] => note,
        servers => {
            let (count, lines) = (servers.len(), lines(servers, role));
            format!("{note}; {count} of them have started the others:{lines}")
        }
    }
}

/// Formats the note that one of the processes of a name is taken.
pub(crate) fn chosen(name: &str, count: usize, chosen: &Choice) -> String {
    let (name, Choice { pid, reason }) = (printable::text(name.as_bytes()), chosen);
    format!("{count} processes are called {name}: {pid} is taken, {reason}")
}

/// Formats the error that a command takes one process, with the candidates; they have this name, if
/// one was given.
pub(crate) fn too_many(name: Option<&str>, pids: &[u32], role: Role) -> String {
    let (command, count) = (role.command, pids.len());
    let these = match name {
        Some(name) => format!("{count} are called {}", printable::text(name.as_bytes())),
        None => format!("these are {count}"),
    };
    format!(
        "{command} takes one process, but {these}; choose one with -p PID:{}",
        lines(pids, role)
    )
}

/// Formats the note that a process has children, which are not looked at.
pub(crate) fn children_left_out(pid: u32, count: usize) -> Option<String> {
    let (children, are) = match count {
        0 => return None,
        1 => ("1 child".to_owned(), "is"),
        count => (format!("{count} children"), "are"),
    };
    Some(format!(
        "process {pid} has {children}, which {are} not included: add --children"
    ))
}

/// Formats the note that one of several processes has started others of them.
pub(crate) fn later_left_out(parent: u32) -> String {
    format!(
        "process {parent} has started others of these; processes that it starts from now on are \
         not included: add --children"
    )
}

/// Formats the note that processes have started others since.
pub(crate) fn started_since(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some(
            "1 process that was started since then was not included: add --children".to_owned(),
        ),
        count => Some(format!(
            "{count} processes that were started since then were not included: add --children"
        )),
    }
}

/// Returns the error that no process has a name, or only a thread of the kernel. It lists processes
/// of near names, and shows how to start or list the program of that name. `words` is everything
/// that was typed.
pub(crate) fn not_there(name: &str, words: &[&str], role: Role) -> anyhow::Error {
    let shown = printable::text(name.as_bytes());
    if let Some(pid) = called_in_kernel(name) {
        return anyhow!("no process is called {shown}, but a kernel thread is (pid {pid})");
    }
    let near = match near(name).as_slice() {
        [] => String::new(),
        pids => format!("; did you mean one of these?{}", lines(pids, role)),
    };
    let program = host::find_program(name.as_ref()).filter(|path| path.is_file());
    let hint = match program {
        Some(_) if role.starts => {
            let rest = words.iter().skip_while(|word| **word != name).skip(1);
            let command: Vec<_> = std::iter::once(&name)
                .chain(rest)
                .map(|word| shell::word(*word))
                .collect();
            format!(
                "\nto start the program of that name: dptrace {} -- {}",
                role.command,
                command.join(" ")
            )
        }
        Some(path) if role.command == "list" => {
            format!(
                "\nto list the program of that name: dptrace list {}",
                shell::word(&path)
            )
        }
        _ => String::new(),
    };
    anyhow!("no process is called {shown}{near}{hint}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use super::*;
    use crate::ProcessCount;

    const ROLE: Role = Role {
        command: "run",
        takes: ProcessCount::All("traced"),
        starts: false,
    };

    /// The first process of each server separates its workers from those of another.
    #[test]
    fn several_servers_are_listed() {
        let start = |_| {
            let mut server = testkit::command("sh");
            // The worker ends with its input, and the server with the worker.
            server.args(["-c", "sh -c 'echo $$; read line'; true"]);
            let pipes = server.stdin(Stdio::piped()).stdout(Stdio::piped());
            pipes.spawn().unwrap()
        };
        let mut servers: Vec<_> = (0..2).map(start).collect();
        let mut pids = Vec::new();
        for server in &mut servers {
            let mut line = String::new();
            let output = server.stdout.as_mut().unwrap();
            BufReader::new(output).read_line(&mut line).unwrap();
            pids.extend([server.id(), line.trim().parse().unwrap()]);
        }
        let several = several("sh", &pids, "traced", ROLE);
        let one = super::several("sh", &pids[..2], "traced", ROLE);
        let started = [servers[0].id(), servers[1].id()];
        for mut server in servers {
            drop(server.stdin.take());
            server.wait().unwrap();
        }
        let note = "4 processes are called sh, and all are traced (-p PID takes one); 2 of them have \
                    started the others:";
        assert!(several.starts_with(note), "{several}");
        let listed = several.lines().skip(1).map(|line| {
            let (pid, _) = line.trim_start().split_once(' ').unwrap();
            pid.parse::<u32>().unwrap()
        });
        assert_eq!(listed.collect::<Vec<_>>(), started, "{several}");
        assert_eq!(
            one,
            "2 processes are called sh, and all are traced (-p PID takes one)"
        );
    }
}
