//! Lists USDT probes.

use std::io::Write as _;

use console::messages::{note, note_left_out};
use console::output::Output;
use host::{Depth, ElfFile, Files};
use serde_json::{Value, json};
use text::patterns::ProbePattern;
use text::printable::{self, path as printable};
use usdt::args::ArgSpec;
use usdt::{Probe, ProbeLocation, UsdtProbes};

use super::target::Request;
use super::{library_meant, nothing_fits_in_groups};

/// Lists the probes that match the pattern.
pub(super) fn list(
    request: &Request,
    files: &Files,
    pattern: Option<&ProbePattern>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut shown = 0;
    files.for_each(Depth::Notes, note_left_out, |file| -> anyhow::Result<()> {
        let mut probes = read(file)?;
        probes.retain(|probe| {
            pattern.is_none_or(|pattern| pattern.matches(&probe.provider, &probe.name))
        });
        probes.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
        shown += probes.len();
        if request.json {
            write_json(file, &probes, output)?;
        } else {
            write_text(request, file, &probes, output)?;
        }
        Ok(output.drain()?)
    })?;
    match pattern {
        _ if shown > 0 => {}
        Some(_) if files.has_library(&request.typed) => return Err(library_meant(request)),
        Some(_) => {
            // Names are gathered only now, since there may be many.
            let mut known = Vec::new();
            files.for_each(Depth::Notes, note_left_out, |file| -> anyhow::Result<()> {
                let probes = UsdtProbes::read_with(&file.image()?, &file.code()?).probes;
                known.extend(
                    probes
                        .iter()
                        .map(|probe| (probe.provider.to_string(), probe.name.to_string())),
                );
                Ok(())
            })?;
            let more = "; --functions lists its functions";
            return Err(nothing_fits_in_groups("USDT probe", request, &known, more));
        }
        None => {
            let place = &request.place;
            note(&format!(
                "{place} has no USDT probes; SPDK has them if it was configured with --with-usdt, Open vSwitch \
                with --enable-usdt-probes"
            ));
        }
    }
    Ok(())
}

/// Returns the probes of a file; reports invalid notes.
fn read(file: &ElfFile) -> anyhow::Result<Vec<Probe>> {
    let image = file.image()?;
    let mut probes = UsdtProbes::read_with(&image, &file.code()?);
    if !probes.wanted_symbols().is_empty() {
        let whole = file.whole()?;
        let debug = whole.debug_file();
        let debug = debug.as_ref().and_then(|debug| debug.image().ok());
        probes.resolve(&whole.image()?, debug.as_ref());
    }
    if let Some(first) = probes.faults.first() {
        let path = printable(file.path());
        let notes = if probes.broken == 1 { "note" } else { "notes" };
        note(&format!(
            "{path}: left out {} invalid USDT {notes}; the first: {first}",
            probes.broken
        ));
    }
    Ok(probes.probes)
}

fn write_text(
    request: &Request,
    file: &ElfFile,
    probes: &[Probe],
    output: &mut Output,
) -> anyhow::Result<()> {
    if probes.is_empty() {
        return Ok(());
    }
    writeln!(output.buffer, "{}", printable(file.path()))?;
    let width = |probe: &Probe| probe.provider.chars().count() + 1 + probe.name.chars().count();
    let width = probes.iter().map(width).max().unwrap_or_default();
    for probe in probes {
        let name = format!("{}:{}", probe.provider, probe.name);
        let places = match probe.places.len() {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        };
        let semaphore = if has_semaphore(probe) {
            "semaphore"
        } else {
            ""
        };
        let args = if request.places {
            String::new()
        } else {
            first_args(probe)
        };
        let line = format!("  {name:width$}  {places:10}  {semaphore:9}  {args}");
        writeln!(
            output.buffer,
            "{}",
            printable::text(line.trim_end().as_bytes())
        )?;
        for place in probe.places.iter().filter(|_| request.places) {
            let line = format!(
                "    {:<10}  {}",
                place.at.offset().to_string(),
                args_text(place)
            );
            writeln!(
                output.buffer,
                "{}",
                printable::text(line.trim_end().as_bytes())
            )?;
            output.drain()?;
        }
        output.drain()?;
    }
    Ok(())
}

fn has_semaphore(probe: &Probe) -> bool {
    probe.places.iter().any(|place| place.semaphore.is_some())
}

/// Formats the arguments at the first place, with a remark if they differ at other places.
fn first_args(probe: &Probe) -> String {
    let Some((first, others)) = probe.places.split_first() else {
        return String::new();
    };
    let elsewhere = others
        .iter()
        .filter(|place| place.args != first.args)
        .count();
    let more = if elsewhere > 0 {
        format!("  (differs at {elsewhere} of the places: --places)")
    } else {
        String::new()
    };
    format!("{}{more}", args_text(first))
}

fn args_text(place: &ProbeLocation) -> String {
    let args: Vec<_> = place.args.iter().map(arg_text).collect();
    args.join(", ")
}

fn arg_text(arg: &ArgSpec) -> String {
    if arg.unreadable().is_some() {
        format!("{arg} (unreadable)")
    } else {
        arg.to_string()
    }
}

/// Writes a line for each probe, place by place: a probe may have a million places, and JSON values
/// take 50 times the bytes of their notes.
fn write_json(file: &ElfFile, probes: &[Probe], output: &mut Output) -> anyhow::Result<()> {
    for probe in probes {
        let head = json!({
            "kind": "usdt",
            "provider": probe.provider,
            "name": probe.name,
            "file": printable(file.path()),
            "semaphore": has_semaphore(probe),
        });
        let head = text::json::document("list.usdt", &head);
        write!(output.buffer, "{},\"places\":[", head.trim_end_matches('}'))?;
        for (index, place) in probe.places.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(
                output.buffer,
                "{comma}{}",
                printable::json_document(place_json(place).to_string())
            )?;
            output.drain()?;
        }
        writeln!(output.buffer, "]}}")?;
        output.drain()?;
    }
    Ok(())
}

fn place_json(place: &ProbeLocation) -> Value {
    let args: Vec<_> = place.args.iter().map(arg_json).collect();
    json!({
        "offset": place.at.offset().to_string(),
        "address": place.vaddr.to_string(),
        "semaphore_offset": place.semaphore.map(|semaphore| semaphore.offset.to_string()),
        "args": args,
    })
}

fn arg_json(arg: &ArgSpec) -> Value {
    let unreadable = arg.unreadable().map(|reason| reason.to_string());
    json!({ "type": arg.ty.to_string(), "place": arg.text, "unreadable": unreadable })
}
