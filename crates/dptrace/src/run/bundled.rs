//! The scripts that dptrace carries, and `dptrace scripts`.

use std::io::Write as _;

use crate::failure::usage;
use crate::output::Output;

/// A script that dptrace carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bundled {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        [$(Bundled { name: $name, text: include_str!(concat!("../../../../scripts/", $name, ".bt")) }),*]
    };
}

/// All of them.
pub(super) const ALL: &[Bundled] = &bundled![
    "nvmf",
    "nvme",
    "nvmf_timeout",
    "sched",
    "send_msg",
    "intr-wakeups",
    "readv",
    "syscalls",
    "bridge_loop",
    "upcalls",
    "offcpu",
    "runqlat",
    "syslat",
    "usdt-count",
];

impl Bundled {
    /// What it is for: the first line of its first comment.
    fn about(self) -> &'static str {
        let comments = self.text.lines().filter_map(|line| line.strip_prefix("//"));
        comments.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// What must be there for it, in its own words.
    pub(super) fn needs(self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("// needs:")).map(str::trim).unwrap_or_default()
    }
}

/// The one of this name.
pub(super) fn find(name: &str) -> Option<Bundled> {
    ALL.iter().copied().find(|script| script.name == name)
}

/// `dptrace scripts`: lists them, or prints one.
pub(crate) fn scripts(name: Option<&str>) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    if let Some(name) = name {
        let names = ALL.iter().map(|script| script.name);
        let near = || format!("there is no bundled script {name:?}{}", crate::names::hint(name, names));
        let script = find(name).ok_or_else(|| usage(near()))?;
        output.buffer.extend(script.text.as_bytes());
        return Ok(output.flush()?);
    }
    let width = ALL.iter().map(|script| script.name.len()).max().unwrap_or_default();
    for script in ALL {
        writeln!(output.buffer, "{:<width$}  {}", script.name, script.about())?;
    }
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_is_for_and_what_it_needs() {
        for script in ALL {
            assert!(!script.about().is_empty() && !script.needs().is_empty(), "{}", script.name);
        }
    }
}
