//! Stacks as text.

use std::fmt::Write as _;

use bt_abi::StackMode;
use bt_abi::bytes::BuildIdFrame;

use crate::lookups::{Frame, Symbol};

/// How far frames are indented.
const INDENT: &str = "        ";

/// What stands in the place of the first frame that is no code: what is behind it is not the thread's callers.
const CUT: &str = "... (no code here: built without frame pointers?)";

/// How the names begin of the functions that stand between a tracepoint and the program in the kernel's stack: they are not the
/// thread's (`include/linux/tracepoint.h`, `include/trace/perf.h`, `kernel/trace/bpf_trace.c`).
const TRACER: [&str; 5] = ["__traceiter_", "perf_trace_", "__bpf_trace_", "bpf_trace_run", "bpf_prog_"];
/// The scheduler's functions that every thread leaves the CPU in (`kernel/sched/core.c`).
const SCHEDULER: [&str; 2] = ["__schedule", "schedule"];

/// Whether one of the innermost frames of the kernel's stack is left out in this mode. bpftrace's own modes have all frames.
pub(crate) fn is_tracer(frame: &Frame, mode: StackMode) -> bool {
    let Frame::Functions(symbols) = frame else { return false };
    let is_tracer = |symbol: &Symbol| TRACER.iter().any(|begin| symbol.name.starts_with(begin));
    let is_scheduler = |symbol: &Symbol| mode == StackMode::Short && SCHEDULER.contains(&symbol.name.as_str());
    matches!(mode, StackMode::Folded | StackMode::Short)
        && symbols.iter().all(|symbol| is_tracer(symbol) || is_scheduler(symbol))
}

/// A stack. `frame` says what an address is in, and whether it is where a caller goes on. The text ends where there is no code.
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
            // The thread was there: what it has mapped has changed since.
            (Frame::NotCode, 0) => unnamed(&mut out, address, mode, &format!("{address:#x}")),
            (Frame::NotCode, _) => {
                let _ = match mode {
                    // A frame to those that read perf's form.
                    StackMode::Perf => writeln!(out, "\t{address:x} {CUT} ([unknown])"),
                    _ => writeln!(out, "{INDENT}{CUT}"),
                };
                break;
            }
        }
    }
    out
}

/// A stack on one line, the outermost function first, with a `;` before each, so that stacks can follow one another: the form
/// that flame graph tools read. The `;` of a name would end the name.
fn folded(addresses: impl Iterator<Item = u64>, frame: impl Fn(u64, bool) -> Frame) -> String {
    let mut names = Vec::new();
    for (depth, address) in addresses.enumerate() {
        match (frame(address, depth > 0), depth) {
            (Frame::Functions(symbols), _) => {
                names.extend(symbols.into_iter().map(|symbol| symbol.name.replace(';', ":")));
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
        let _ = if perf { writeln!(out, "\t{address:x} {name}") } else { writeln!(out, "{INDENT}{name}") };
    }
}

/// A frame's function: `name+offset`, with the module in perf's form and with the source's line in bpftrace's.
fn name(symbol: &Symbol, perf: bool) -> String {
    let Symbol { name, offset, module, place, inlined } = symbol;
    match (perf, inlined) {
        (true, true) => format!("{name} (inlined)"),
        (true, false) => match module {
            Some(module) => format!("{name}+{offset} ({module})"),
            None => format!("{name}+{offset}"),
        },
        (false, _) => {
            let mut out = if *inlined { format!("[inlined] {name}") } else { format!("{name}+{offset}") };
            if let Some(place) = place {
                let _ = write!(out, "@{}:{}", place.file, place.line);
            }
            out
        }
    }
}

/// Frames with build ids.
pub(crate) fn build_ids(frames: impl Iterator<Item = BuildIdFrame>) -> String {
    let mut out = String::from("\n");
    for BuildIdFrame { status, build_id, offset } in frames {
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
            let symbol = Symbol { name: name.to_owned(), ..Symbol::default() };
            is_tracer(&Frame::Functions(vec![symbol]), mode)
        };
        for name in ["__traceiter_sched_switch", "bpf_trace_run4", "bpf_prog_d1e902b882fa3f0a_x", "perf_trace_run"] {
            assert!(is_left_out(name, StackMode::Short) && is_left_out(name, StackMode::Folded), "{name}");
            assert!(!is_left_out(name, StackMode::Bpftrace) && !is_left_out(name, StackMode::Perf), "{name}");
        }
        assert!(is_left_out("__schedule", StackMode::Short) && !is_left_out("__schedule", StackMode::Folded));
        assert!(!is_left_out("schedule_timeout", StackMode::Short));
        assert!(!is_tracer(&Frame::Unnamed("0x1".to_owned()), StackMode::Short));
    }
}
