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

/// Name of an argument that is a time, which scripts read as a number of milliseconds.
const MILLISECONDS: &str = "MS";

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

    /// Returns the first Linux release that it runs on, such as `5.13`, if it needs a later one than
    /// dptrace does.
    pub fn kernel(self) -> Option<&'static str> {
        let (_, release) = self.needs().split_once("Linux ")?;
        release.split([';', ',', ' ']).next()
    }

    /// Returns its arguments, such as `[MS]`; empty if it takes none.
    pub fn arguments(self) -> &'static str {
        named(self.takes())
    }

    /// Returns its comment on its arguments; empty if it takes none.
    fn takes(self) -> &'static str {
        comment_on_arguments(self.text)
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

    /// Returns what is wrong with its arguments: one is missing that is not in brackets, with an
    /// example command, or is no number.
    pub fn mistake_in(self, given: &[&str]) -> Option<String> {
        let (name, mut known) = (self.name, self.arguments().split_whitespace());
        for word in given {
            if let Err(what) = plain_argument(known.next()?, word) {
                return Some(format!("{name}: {MILLISECONDS} is {word:?}: {what}"));
            }
        }
        let is_missing = known.next().is_some_and(|next| !next.starts_with('['));
        is_missing.then(|| {
            let mut parts = self.takes().split("; ");
            let missing = parts.next().unwrap_or_default().split(' ').nth(given.len());
            let (missing, what) = (missing.unwrap_or_default(), parts.nth(given.len()));
            let what = what.map_or_else(String::new, |what| format!(", {what}"));
            let example = self.example();
            format!("{name} needs an argument: {missing}{what}; for example: {example}")
        })
    }

    /// Returns a command that runs it for a while, as an example.
    pub fn example(self) -> String {
        let value = self.takes().split_once("such as ");
        let value = value.and_then(|(_, value)| value.split([' ', ',']).next());
        let mut words = vec!["dptrace run", self.name];
        words.extend(value);
        if self.needs().contains("-p ") {
            words.extend(["-p", self.example_process()]);
        }
        words.extend(["--for", "10s"]);
        words.join(" ")
    }

    /// Returns the words that run it: its name and its arguments.
    pub fn call(self) -> String {
        format!("{} {}", self.name, self.arguments())
            .trim_end()
            .to_owned()
    }
}

/// Returns a script's comment on its arguments; empty if it takes none.
fn comment_on_arguments(script: &str) -> &str {
    script
        .lines()
        .find_map(|line| line.strip_prefix("// takes:"))
        .map(str::trim)
        .unwrap_or_default()
}

/// Returns the names of the arguments in a script's comment on them: the part before a semicolon.
pub fn named(takes: &str) -> &str {
    takes.split(';').next().unwrap_or_default().trim()
}

/// Returns the words after a script's name as the script reads them: a time with a unit becomes
/// milliseconds, if the script's comment calls the argument MS. Options of the script (`--name`)
/// and words that are no time stay.
pub fn plain_words(script: &str, words: &[String]) -> Vec<String> {
    let mut known = named(comment_on_arguments(script)).split_whitespace();
    let plain = |word: &String| {
        let argument = if word.starts_with("--") {
            None
        } else {
            known.next()
        };
        match argument.map(|argument| plain_argument(argument, word)) {
            Some(Ok(plain)) => plain,
            _ => word.clone(),
        }
    };
    words.iter().map(plain).collect()
}

/// Returns a word as a script reads it; `argument` is its name in the script's comment.
fn plain_argument(argument: &str, word: &str) -> Result<String, &'static str> {
    if argument.trim_matches(['[', ']']) != MILLISECONDS || word.starts_with("0x") {
        return Ok(word.to_owned());
    }
    text::duration::parse_millis(word).map(|millis| millis.to_string())
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
        let queries = find("pg-queries").unwrap();
        assert_eq!(queries.mistake_in(&[]), None);
        assert_eq!(queries.mistake_in(&["20"]), None);
        assert_eq!(queries.mistake_in(&["20ms"]), None);
        assert_eq!(
            queries.mistake_in(&["500us"]).unwrap(),
            "pg-queries: MS is \"500us\": expected whole milliseconds, as in 100, 100ms or 2s"
        );
        let libcalls = find("libcalls").unwrap();
        let missing = libcalls.mistake_in(&[]).unwrap();
        assert_eq!(
            missing,
            "libcalls needs an argument: LIBRARY, a library's name, such as libz or libz.so.1, or \
             its path; for example: dptrace run libcalls libz -p PID --for 10s"
        );
        assert_eq!(libcalls.mistake_in(&["libz"]), None);
        assert_eq!(libcalls.mistake_in(&["libz", "crc"]), None);
    }

    #[test]
    fn times_become_milliseconds() {
        let plain = |script: &str, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            plain_words(script, &words).join(" ")
        };
        let queries = find("pg-queries").unwrap().text;
        for (typed, read) in [
            ("100", "100"),
            ("100ms", "100"),
            ("2s", "2000"),
            ("0x10", "0x10"),
        ] {
            assert_eq!(plain(queries, &[typed]), read);
        }
        // An option of a script of one's own is no argument; what is no time is left to the script.
        let own = "// takes: FILE [MS]; a file\n";
        assert_eq!(plain(own, &["--x=1s", "1s", "1s"]), "--x=1s 1s 1000");
        assert_eq!(plain(own, &["a", "soon", "3s"]), "a soon 3s");
        assert_eq!(plain("begin { }", &["1s"]), "1s");
    }

    #[test]
    fn examples_end_by_themselves() {
        for (name, command) in [
            (
                "pg-queries",
                "dptrace run pg-queries -p postgres --children --for 10s",
            ),
            ("libcalls", "dptrace run libcalls libz -p PID --for 10s"),
            ("syslat", "dptrace run syslat -p PID --for 10s"),
            ("disk-latency", "dptrace run disk-latency --for 10s"),
        ] {
            assert_eq!(find(name).unwrap().example(), command);
        }
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

    /// The kernel that a script needs stands in its first comment, once.
    #[test]
    fn the_table_of_the_documents_has_the_kernels() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/scripts.md");
        let page = std::fs::read_to_string(page).unwrap();
        for script in all() {
            let row = format!("| `{}` | ", script.name);
            let row = page.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("{} has no row", script.name));
            let shown: Option<&str> = row
                .split_once("needs Linux ")
                .and_then(|(_, rest)| rest.split([' ', ',', ';']).next());
            assert_eq!(shown, script.kernel(), "{row}");
            let times = script.text.matches("Linux 5.").count();
            assert_eq!(times, usize::from(shown.is_some()), "{}", script.name);
        }
        assert_eq!(find("upcalls").unwrap().kernel(), Some("5.14"));
        assert_eq!(find("runqlat").unwrap().kernel(), None);
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
