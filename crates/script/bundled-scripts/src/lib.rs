//! The scripts that dptrace brings along, by topic, with what their comments say of them.
#![forbid(unsafe_code)]

/// Script that is part of dptrace.
#[derive(Clone, Copy, Debug)]
pub struct BundledScript {
    /// Name without the ending `.bt`.
    pub name: &'static str,
    /// Text of the script.
    pub text: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(BundledScript { name: $name, text: include_str!(concat!("../../../../scripts/", $name, ".bt")) }),*]
    };
}

/// All scripts by topic, in list order.
const TOPICS: &[(&str, &[BundledScript])] = &[
    (
        "CPU and threads",
        bundled![
            "runqlat",
            "offcpu",
            "offcpu-folded",
            "cpu-folded",
            "futex-waits"
        ],
    ),
    ("Memory", bundled!["page-faults", "memory-growth"]),
    (
        "System calls, files and disks",
        bundled![
            "syscalls",
            "syslat",
            "syslat-hist",
            "syscall-errors",
            "file-calls",
            "opensnoop",
            "files-opened",
            "failed-opens",
            "fsync-files",
            "readv",
            "disk-latency",
        ],
    ),
    (
        "Network",
        bundled![
            "peer-calls",
            "tcp-connects",
            "tcp-resets",
            "tcp-retransmits",
            "dns",
            "tls-handshakes"
        ],
    ),
    ("Processes", bundled!["execs", "signals"]),
    (
        "Applications",
        bundled!["pg-queries", "pg-waits", "usdt-count", "libcalls"],
    ),
    ("Open vSwitch", bundled!["upcalls", "bridge_loop"]),
    (
        "SPDK",
        bundled![
            "nvmf",
            "nvme",
            "nvmf_timeout",
            "sched",
            "send_msg",
            "intr-wakeups"
        ],
    ),
];

/// Returns the topics in the order of the list, each with its scripts.
pub fn topics() -> &'static [(&'static str, &'static [BundledScript])] {
    TOPICS
}

/// Returns all scripts.
pub fn all() -> impl Iterator<Item = BundledScript> {
    TOPICS
        .iter()
        .flat_map(|(_, scripts)| scripts.iter().copied())
}

/// Returns the names of all scripts, each with its purpose.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|script| (script.name, script.about()))
}

impl BundledScript {
    /// Returns its purpose: the first line of its first comment.
    pub fn about(self) -> &'static str {
        let comments = self.text.lines().filter_map(|line| line.strip_prefix("//"));
        comments
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default()
    }

    /// Returns its requirements, in its own words.
    pub fn needs(self) -> &'static str {
        self.text
            .lines()
            .find_map(|line| line.strip_prefix("// needs:"))
            .map(str::trim)
            .unwrap_or_default()
    }

    /// Returns its arguments, such as `[MS]`; empty if it takes none.
    pub fn arguments(self) -> &'static str {
        named(self.takes())
    }

    /// Returns its comment on its arguments; empty if it takes none.
    fn takes(self) -> &'static str {
        self.text
            .lines()
            .find_map(|line| line.strip_prefix("// takes:"))
            .map(str::trim)
            .unwrap_or_default()
    }

    /// Returns whether it needs a process to look into.
    pub fn needs_process(self) -> bool {
        let mut code = self.text.lines().filter(|line| !line.starts_with("//"));
        code.any(|line| line.contains("__EXE__") || line.contains("__PID__"))
    }

    /// Returns an example value for `-p`: a name from the script's requirements, with `--children`
    /// if that follows (`-p postgres --children`), or PID.
    pub fn example_process(self) -> &'static str {
        const CHILDREN: &str = " --children";
        let example = |rest: &'static str| {
            let word = rest.find([' ', ',']).unwrap_or(rest.len());
            let children = if rest[word..].starts_with(CHILDREN) {
                CHILDREN.len()
            } else {
                0
            };
            &rest[..word + children]
        };
        self.needs()
            .split("-p ")
            .skip(1)
            .map(example)
            .find(|word| *word != "PID")
            .unwrap_or("PID")
    }

    /// Returns whether its code refers to arguments.
    pub fn takes_arguments(self) -> bool {
        let is_argument = |rest: &str| rest.starts_with(|c: char| c == '#' || c.is_ascii_digit());
        self.text
            .match_indices('$')
            .any(|(at, _)| is_argument(&self.text[at + 1..]))
    }

    /// Returns the message that an argument is missing, if fewer are given than the script needs.
    /// Those in brackets can be left out.
    pub fn missing_argument(self, given: usize) -> Option<String> {
        let missing = self.arguments().split_whitespace().nth(given)?;
        let is_required = !missing.starts_with('[');
        is_required.then(|| format!("{} needs an argument: {}", self.name, self.takes()))
    }

    /// Returns the words that run it: its name and its arguments.
    pub fn call(self) -> String {
        format!("{} {}", self.name, self.arguments())
            .trim_end()
            .to_owned()
    }
}

/// Returns the names of the arguments in a script's comment on them: the part before a semicolon.
pub fn named(takes: &str) -> &str {
    takes.split(';').next().unwrap_or_default().trim()
}

/// Returns the script of this name.
pub fn find(name: &str) -> Option<BundledScript> {
    all().find(|script| script.name == name)
}

/// Returns whether a script has this name.
pub fn is_bundled(name: &str) -> bool {
    find(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_is_for_and_what_it_needs() {
        for script in all() {
            assert!(
                !script.about().is_empty() && !script.needs().is_empty(),
                "{}",
                script.name
            );
        }
    }

    #[test]
    fn every_script_that_takes_arguments_says_which() {
        for script in all() {
            assert_eq!(
                script.arguments().is_empty(),
                !script.takes_arguments(),
                "{}",
                script.name
            );
        }
        assert_eq!(find("pg-queries").unwrap().call(), "pg-queries [MS]");
        assert_eq!(find("pg-queries").unwrap().missing_argument(0), None);
        let libcalls = find("libcalls").unwrap();
        let missing = libcalls.missing_argument(0).unwrap();
        assert!(
            missing.starts_with("libcalls needs an argument: library; "),
            "{missing}"
        );
        assert_eq!(libcalls.missing_argument(1), None);
    }

    #[test]
    fn scripts_about_a_process_say_so() {
        for script in all() {
            let says =
                script.needs().contains("-p PID") && !script.needs().contains("or all processes");
            assert_eq!(script.needs_process(), says, "{}", script.name);
        }
        assert_eq!(
            find("pg-queries").unwrap().example_process(),
            "postgres --children"
        );
        assert_eq!(find("syslat").unwrap().example_process(), "PID");
    }

    #[test]
    fn names_are_unique_and_all_files_are_bundled() {
        let files =
            std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts")).unwrap();
        let mut files: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut names: Vec<String> = all().map(|script| format!("{}.bt", script.name)).collect();
        files.sort();
        names.sort();
        assert_eq!(names, files);
    }
}
