//! Stacks as text.

use std::fmt::Write as _;

use bt_abi::StackMode;
use bt_abi::bytes::BuildIdFrame;

use crate::lookups::{Frame, Symbol};

/// Indentation of frames.
const INDENT: &str = "        ";

/// Text for the first frame that is not code. Frames behind it are not the thread's callers.
const NO_CODE: &str = "no code here: built without frame pointers?";

/// Name prefixes of the functions between a tracepoint and the program in the kernel's stack. They
/// are not the thread's own (`include/linux/tracepoint.h`, `include/trace/perf.h`,
/// `kernel/trace/bpf_trace.c`).
const TRACER: [&str; 5] = [
    "__traceiter_",
    "perf_trace_",
    "__bpf_trace_",
    "bpf_trace_run",
    "bpf_prog_",
];
/// Scheduler functions in which every thread leaves the CPU (`kernel/sched/core.c`).
const SCHEDULER: [&str; 2] = ["__schedule", "schedule"];

/// Returns true if a frame at the inner end of the kernel's stack is left out. Only the modes
/// `Folded` and `Short` leave frames out.
pub(crate) fn is_tracer(frame: &Frame, mode: StackMode) -> bool {
    let Frame::Functions(symbols) = frame else {
        return false;
    };
    let is_tracer = |symbol: &Symbol| TRACER.iter().any(|begin| symbol.name.starts_with(begin));
    let is_scheduler =
        |symbol: &Symbol| mode == StackMode::Short && SCHEDULER.contains(&symbol.name.as_str());
    matches!(mode, StackMode::Folded | StackMode::Short)
        && symbols
            .iter()
            .all(|symbol| is_tracer(symbol) || is_scheduler(symbol))
}

/// Formats a stack, up to the first caller that is not code. `frame` returns the frame at an
/// address; its flag marks a caller's return address.
pub(crate) fn text(
    addresses: impl Iterator<Item = u64>,
    mode: StackMode,
    frame: impl Fn(u64, bool) -> Frame,
) -> String {
    if mode == StackMode::Folded {
        return folded(addresses, frame);
    }
    let mut out = String::from("\n");
    for (depth, address) in addresses.enumerate() {
        // SANITY: writing to a string doesn't fail, here and below.
        if matches!(mode, StackMode::Raw | StackMode::BuildId) {
            let _ = writeln!(out, "{address:x}");
            continue;
        }
        match (frame(address, depth > 0), depth) {
            (Frame::Functions(symbols), _) => functions(&mut out, address, mode, &symbols),
            (Frame::Unnamed(text), _) => unnamed(&mut out, address, mode, &text),
            // The thread ran there; its mappings have changed since.
            (Frame::NotCode, 0) => unnamed(&mut out, address, mode, &format!("{address:#x}")),
            (Frame::NotCode, _) => {
                let _ = match mode {
                    // Readers of perf's form see a frame here.
                    StackMode::Perf => writeln!(out, "\t{address:x} ... ({NO_CODE}) ([unknown])"),
                    // Stacks that differ only from here on are different keys, and look so.
                    _ => writeln!(out, "{INDENT}... ({address:#x}: {NO_CODE})"),
                };
                break;
            }
        }
    }
    out
}

/// Formats a stack on one line for flame graph tools, outermost function first. Each name has a `;`
/// before it, so that stacks can follow one another. A `;` in a name would end the name, so it
/// becomes `:`.
fn folded(addresses: impl Iterator<Item = u64>, frame: impl Fn(u64, bool) -> Frame) -> String {
    let mut names = Vec::new();
    for (depth, address) in addresses.enumerate() {
        match (frame(address, depth > 0), depth) {
            (Frame::Functions(symbols), _) => {
                names.extend(
                    symbols
                        .into_iter()
                        .map(|symbol| symbol.name.replace(';', ":")),
                );
            }
            (Frame::Unnamed(text), _) => names.push(text.replace(';', ":")),
            (Frame::NotCode, 0) => names.push(format!("{address:#x}")),
            (Frame::NotCode, _) => {
                names.push("[no code]".to_owned());
                break;
            }
        }
    }
    names.reverse();
    names.iter().flat_map(|name| [";", name]).collect()
}

fn unnamed(out: &mut String, address: u64, mode: StackMode, text: &str) {
    let _ = match mode {
        StackMode::Perf => writeln!(out, "\t{address:x} {text} ([unknown])"),
        _ => writeln!(out, "{INDENT}{text}"),
    };
}

fn functions(out: &mut String, address: u64, mode: StackMode, symbols: &[Symbol]) {
    let perf = mode == StackMode::Perf;
    for symbol in symbols {
        let name = name(symbol, perf);
        let _ = if perf {
            writeln!(out, "\t{address:x} {name}")
        } else {
            writeln!(out, "{INDENT}{name}")
        };
    }
}

/// Formats a frame's function as `name+offset`, in perf's form with the module, in bpftrace's with
/// the source line.
fn name(symbol: &Symbol, perf: bool) -> String {
    let Symbol {
        name,
        offset,
        module,
        place,
        inlined,
    } = symbol;
    match (perf, inlined) {
        (true, true) => format!("{name} (inlined)"),
        (true, false) => match module {
            Some(module) => format!("{name}+{offset} ({module})"),
            None => format!("{name}+{offset}"),
        },
        (false, _) => {
            let mut out = if *inlined {
                format!("[inlined] {name}")
            } else {
                format!("{name}+{offset}")
            };
            if let Some(place) = place {
                let _ = write!(out, "@{}:{}", place.file, place.line);
            }
            out
        }
    }
}

/// Formats frames with build ids.
pub(crate) fn build_ids(frames: impl Iterator<Item = BuildIdFrame>) -> String {
    let mut out = String::from("\n");
    for BuildIdFrame {
        status,
        build_id,
        offset,
    } in frames
    {
        // SANITY: writing to a string doesn't fail.
        if status == BuildIdFrame::VALID {
            for byte in build_id {
                let _ = write!(out, "{byte:02x}");
            }
            let _ = writeln!(out, " 0x{offset:02x}");
        } else {
            let _ = writeln!(out, "{offset:x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_tracer_are_left_out_of_our_own_modes_only() {
        let is_left_out = |name: &str, mode| {
            let symbol = Symbol {
                name: name.to_owned(),
                ..Symbol::default()
            };
            is_tracer(&Frame::Functions(vec![symbol]), mode)
        };
        for name in [
            "__traceiter_sched_switch",
            "bpf_trace_run4",
            "bpf_prog_d1e902b882fa3f0a_x",
            "perf_trace_run",
        ] {
            assert!(
                is_left_out(name, StackMode::Short) && is_left_out(name, StackMode::Folded),
                "{name}"
            );
            assert!(
                !is_left_out(name, StackMode::Bpftrace) && !is_left_out(name, StackMode::Perf),
                "{name}"
            );
        }
        assert!(
            is_left_out("__schedule", StackMode::Short)
                && !is_left_out("__schedule", StackMode::Folded)
        );
        assert!(!is_left_out("schedule_timeout", StackMode::Short));
        assert!(!is_tracer(
            &Frame::Unnamed("0x1".to_owned()),
            StackMode::Short
        ));
    }
}
