//! Stacks as text.

use std::fmt::Write as _;

use bt_abi::StackMode;
use bt_abi::bytes::BuildIdFrame;

use crate::lookups::Symbol;

/// How far frames are indented.
const INDENT: &str = "        ";

/// A stack. `symbols` gives the functions of an address.
pub(crate) fn text(
    addresses: impl Iterator<Item = u64>,
    mode: StackMode,
    symbols: impl Fn(u64) -> Vec<Symbol>,
) -> String {
    if mode == StackMode::Folded {
        return folded(addresses, symbols);
    }
    let mut out = String::from("\n");
    for address in addresses {
        // SANITY: writing to a string doesn't fail, here and below.
        match mode {
            StackMode::Raw | StackMode::BuildId => {
                let _ = writeln!(out, "{address:x}");
            }
            _ => frame(&mut out, address, mode, &symbols(address)),
        }
    }
    out
}

/// A stack on one line, the outermost function first, with a `;` before each, so that stacks can follow one another: the form
/// that flame graph tools read. The `;` of a name would end the name.
fn folded(addresses: impl Iterator<Item = u64>, symbols: impl Fn(u64) -> Vec<Symbol>) -> String {
    let mut names = Vec::new();
    for address in addresses {
        let found = symbols(address);
        if found.is_empty() {
            names.push(format!("0x{address:x}"));
        }
        names.extend(found.into_iter().map(|symbol| symbol.name.replace(';', ":")));
    }
    names.reverse();
    names.iter().flat_map(|name| [";", name]).collect()
}

fn frame(out: &mut String, address: u64, mode: StackMode, symbols: &[Symbol]) {
    let perf = mode == StackMode::Perf;
    if symbols.is_empty() {
        let _ = if perf {
            writeln!(out, "\t{address:x} 0x{address:x} ([unknown])")
        } else {
            writeln!(out, "{INDENT}0x{address:x}")
        };
    }
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
