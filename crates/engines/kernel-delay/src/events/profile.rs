//! Single system calls as a profile: the time of calls by stack.

use profiles::Profile;

use super::stacks::StackCache;
use super::{Events, name, worst_first};
use crate::names::call_name;
use crate::stacks::Symbols;

impl Events {
    /// Adds the time of each call of wanted threads to a profile in nanoseconds. A stack has the
    /// thread's name, the process's functions, the call, and the kernel's functions.
    pub fn add_to(
        &self,
        profile: &mut Profile,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
    ) {
        let mut cache = StackCache::default();
        let sums = self.summed(wanted, |event| (event.comm, event.stacks));
        for ((comm, stacks), stat) in worst_first(sums) {
            let (comm, call) = (name(&comm), call_name(stacks.slot));
            let user = cache.user_lines(&stacks, self, symbols).to_vec();
            let kernel = cache.kernel_lines(&stacks, self, symbols);
            let outer = [comm.as_str()].into_iter().chain(frames(&user));
            let frames = outer.chain([call.as_str()]).chain(frames(kernel));
            profile.add(frames, stat.total);
        }
    }
}

/// Returns the names of a stack's functions, outermost first.
fn frames(lines: &[String]) -> impl Iterator<Item = &str> {
    lines.iter().rev().map(|line| function(line))
}

/// Returns the name of the function in a line of a stack: `main` of `main+0x1d [app] main.c:7`.
fn function(line: &str) -> &str {
    let end = line.find(" (inlined) [").or_else(|| {
        let offsets = line.match_indices("+0x");
        let is_offset = |rest: &str| {
            let digits = rest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
            digits.is_empty() || digits.starts_with(" [")
        };
        let mut offsets = offsets.filter(|(at, mark)| is_offset(&line[at + mark.len()..]));
        offsets.next().map(|(at, _)| at)
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_its_place() {
        for (line, name) in [
            ("main+0x1d [app] main.c:7", "main"),
            ("operator+0x (int) (inlined) [app]", "operator+0x (int)"),
            ("_start+0x21", "_start"),
            ("[unknown] 0x7f00 [kernel]", "[unknown] 0x7f00 [kernel]"),
            ("", ""),
        ] {
            assert_eq!(function(line), name);
        }
    }
}
