//! Accesses to memory, which the processor watches.

use bt_lang::ast::ProbeKind;

use super::{Target, context, refused};
use crate::ctx::Inputs;
use crate::facts::NotFound;
use bpf_program::ProgramKind;
use bt_abi::Attach;
use uapi::perf::{BREAKPOINT_EXECUTE, BREAKPOINT_READ, BREAKPOINT_WRITE};

/// Accesses by letter, with their bits.
const ACCESSES: [(char, u32); 3] = [
    ('r', BREAKPOINT_READ),
    ('w', BREAKPOINT_WRITE),
    ('x', BREAKPOINT_EXECUTE),
];
/// Length of a breakpoint for execution, on any machine: the size of `long` (perf_event_open(2)).
const EXECUTE_LENGTH: u64 = 8;

/// Resolves `watchpoint:0x1234:8:rw`.
pub(super) fn watchpoint(
    inputs: &Inputs<'_>,
    place: &str,
    length: u64,
    mode: &str,
) -> Result<Vec<Target>, NotFound> {
    let address = address(inputs, place)?;
    let access = access(mode)?;
    if !matches!(length, 1 | 2 | 4 | 8) {
        return Err(refused(
            format!("invalid watchpoint length: {length}"),
            "the processor watches 1, 2, 4 or 8 bytes",
        ));
    }
    if inputs
        .facts
        .traced()
        .is_some_and(|traced| !traced.others.is_empty())
    {
        let hint = "each has its own memory: choose one with -p PID";
        return Err(refused("a watchpoint is for one process", hint));
    }
    let pid = inputs.facts.pid();
    let name = format!("watchpoint:{place}:{length}:{mode}");
    let length = if access == BREAKPOINT_EXECUTE {
        EXECUTE_LENGTH
    } else {
        length
    };
    let attach = Attach::Watchpoint {
        address,
        length,
        access,
        pid,
    };
    let context = context(inputs, ProbeKind::Watchpoint, &name);
    Ok(vec![Target {
        context,
        kind: ProgramKind::PerfEvent,
        btf: None,
        attach,
        name,
    }])
}

/// Parses an address, or finds a symbol of the kernel.
fn address(inputs: &Inputs<'_>, place: &str) -> Result<u64, NotFound> {
    let number = match place.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => place.parse().ok(),
    };
    if place.contains('+') {
        let hint =
            "watch an address; a uprobe shows the argument: uprobe:FILE:FUNCTION { print(arg0); }";
        return Err(refused(
            "watchpoints at an argument of a function are not supported",
            hint,
        ));
    }
    number
        .or_else(|| inputs.facts.kernel_symbol(place))
        .ok_or_else(|| {
            refused(
                format!("{place} is neither an address nor a symbol of the kernel"),
                "as in watchpoint:0x10000000:8:w",
            )
        })
}

fn access(mode: &str) -> Result<u32, NotFound> {
    let mut access = 0;
    for letter in mode.chars() {
        let bit = ACCESSES
            .iter()
            .find(|(known, _)| *known == letter)
            .map_or(0, |(_, bit)| *bit);
        if bit == 0 || access & bit != 0 {
            return Err(refused(
                format!("invalid watchpoint mode: {mode}"),
                "some of r, w and x, each once",
            ));
        }
        access |= bit;
    }
    if access & BREAKPOINT_EXECUTE != 0 && access != BREAKPOINT_EXECUTE {
        return Err(refused(
            format!("invalid watchpoint mode: {mode}"),
            "x stands by itself",
        ));
    }
    Ok(access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        assert_eq!(
            (
                access("rw").unwrap(),
                access("w").unwrap(),
                access("x").unwrap()
            ),
            (3, 2, 4)
        );
        assert!(access("rx").is_err() && access("ww").is_err() && access("q").is_err());
    }
}
