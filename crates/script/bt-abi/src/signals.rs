//! Signals: their names, numbers and texts.

/// First real-time signal that a process can use: the C library keeps two for itself.
const FIRST_REAL_TIME: u64 = 34;
/// Last signal.
const LAST: u64 = 64;

/// Signals by name, each with its number and its text: signal(7), and the texts of strsignal(3).
const SIGNALS: [(&str, u64, &str); 31] = [
    ("HUP", 1, "Hangup"),
    ("INT", 2, "Interrupt"),
    ("QUIT", 3, "Quit"),
    ("ILL", 4, "Illegal instruction"),
    ("TRAP", 5, "Trace/breakpoint trap"),
    ("ABRT", 6, "Aborted"),
    ("BUS", 7, "Bus error"),
    ("FPE", 8, "Floating point exception"),
    ("KILL", 9, "Killed"),
    ("USR1", 10, "User defined signal 1"),
    ("SEGV", 11, "Segmentation fault"),
    ("USR2", 12, "User defined signal 2"),
    ("PIPE", 13, "Broken pipe"),
    ("ALRM", 14, "Alarm clock"),
    ("TERM", 15, "Terminated"),
    ("STKFLT", 16, "Stack fault"),
    ("CHLD", 17, "Child exited"),
    ("CONT", 18, "Continued"),
    ("STOP", 19, "Stopped (signal)"),
    ("TSTP", 20, "Stopped"),
    ("TTIN", 21, "Stopped (tty input)"),
    ("TTOU", 22, "Stopped (tty output)"),
    ("URG", 23, "Urgent I/O condition"),
    ("XCPU", 24, "CPU time limit exceeded"),
    ("XFSZ", 25, "File size limit exceeded"),
    ("VTALRM", 26, "Virtual timer expired"),
    ("PROF", 27, "Profiling timer expired"),
    ("WINCH", 28, "Window changed"),
    ("IO", 29, "I/O possible"),
    ("PWR", 30, "Power failure"),
    ("SYS", 31, "Bad system call"),
];

/// Returns the number of a signal by its name, with or without `SIG`.
pub fn number(name: &str) -> Option<u64> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    SIGNALS
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, number, _)| *number)
}

/// Returns the text of a signal; `N/A` beyond the last.
pub fn text(number: i64) -> String {
    let Some(number) = u64::try_from(number).ok().filter(|number| *number <= LAST) else {
        return "N/A".to_owned();
    };
    match SIGNALS.iter().find(|(_, known, _)| *known == number) {
        Some((.., text)) => (*text).to_owned(),
        None if number >= FIRST_REAL_TIME => {
            format!("Real-time signal {}", number - FIRST_REAL_TIME)
        }
        None => format!("Unknown signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_by_name_and_number() {
        assert_eq!(
            (number("SIGUSR1"), number("KILL"), number("NONE")),
            (Some(10), Some(9), None)
        );
        assert_eq!(
            (text(2).as_str(), text(0).as_str()),
            ("Interrupt", "Unknown signal 0")
        );
        assert_eq!(
            (text(34).as_str(), text(64).as_str()),
            ("Real-time signal 0", "Real-time signal 30")
        );
        assert_eq!((text(65).as_str(), text(-1).as_str()), ("N/A", "N/A"));
    }
}
