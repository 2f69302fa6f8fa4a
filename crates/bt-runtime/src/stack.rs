//! Stacks as text.

use std::fmt::Write as _;

use bt_abi::StackMode;
use bt_abi::bytes::BuildIdFrame;

use crate::lookups::{Frame, Symbol};

/// How far frames are indented.
const INDENT: &str = "        ";

/// What stands in the place of the first frame that is no code: what is behind it is not the thread's callers.
const CUT: &str = "... (no code here: built without frame pointers?)";

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
