//! Lines as wide as the terminal, if the output is one.

use std::io::{self, Write};

use screen::{HEAD, NAME, Screen, wrap};

use crate::{ProcessSum, process_table};

/// Indent of the further lines of a verdict.
const FURTHER: &str = "    ";

/// Writes a line of the verdict; on a terminal it is wrapped at blanks.
pub fn verdict(to: &mut impl Write, screen: Screen, mark: &str, line: &str) -> io::Result<()> {
    let Some(width) = screen.width() else {
        return writeln!(to, "{mark}{line}");
    };
    // The first line has no indent, so that all of them fit.
    let lines = wrap(line, width.saturating_sub(mark.len() + FURTHER.len()));
    for (index, line) in lines.iter().enumerate() {
        match line.split_once("]: ").filter(|_| index == 0) {
            Some((name, rest)) => writeln!(
                to,
                "{mark}{}: {rest}",
                screen.paint(NAME, format!("{name}]"))
            )?,
            None => writeln!(to, "{mark}{}{line}", if index == 0 { "" } else { FURTHER })?,
        }
    }
    Ok(())
}

/// Maximum number of processes with a line by default.
const PROCESSES: usize = 10;

/// Writes the sums of several processes, the last of which is the total.
pub fn sums(to: &mut impl Write, screen: Screen, sums: &[ProcessSum], all: bool) -> io::Result<()> {
    // A single process has no sum.
    let count = sums.len().saturating_sub(1);
    if count == 0 {
        return Ok(());
    }
    let shown = if all { count } else { count.min(PROCESSES) };
    let lines = process_table(sums, screen);
    let [head, processes @ .., sum] = lines.as_slice() else {
        return Ok(());
    };
    writeln!(to, "{}", screen.paint(HEAD, screen.cut(head)))?;
    for line in &processes[..shown] {
        writeln!(to, "{}", screen.cut(line))?;
    }
    if shown < processes.len() {
        let left = (processes.len() - shown) as u64;
        let processes = screen::plural(left, "process", "processes");
        writeln!(to, "{left} more {processes} (--all shows each)")?;
    }
    writeln!(to, "{}", screen.cut(sum))
}

/// Writes lines of a report; on a terminal they are cut.
pub fn cut(to: &mut impl Write, screen: Screen, text: &str) -> io::Result<()> {
    if !screen.is_terminal() {
        return to.write_all(text.as_bytes());
    }
    text.lines()
        .try_for_each(|line| writeln!(to, "{}", screen.cut(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "nginx [23653]: waited for a CPU 320 ms of 500 ms (64%), ran instead: python3 239 ms; own code 7%";

    fn shown(screen: Screen) -> String {
        let mut text = Vec::new();
        verdict(&mut text, screen, "# ", LINE).unwrap();
        cut(&mut text, screen, &format!("{LINE}\n")).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_fit_a_terminal_and_are_whole_elsewhere() {
        assert_eq!(shown(Screen::default()), format!("# {LINE}\n{LINE}\n"));
        for width in [40, 80, 200] {
            let text = shown(Screen::terminal(width, true));
            assert!(
                text.lines().all(|line| screen::columns(line) <= width),
                "{text}"
            );
            assert!(
                text.starts_with("# \u{1b}[36mnginx [23653]\u{1b}[0m: waited"),
                "{text}"
            );
        }
    }
}
