//! Lists USDT probes.

use std::io::Write;

use host::{Depth, ElfFile, Files};
use ordering::Order as _;
use screen::counted;
use serde_json::{Value, json};
use text::patterns::ProbePattern;
use text::printable::{self, path as printable};
use usdt::args::ArgSpec;
use usdt::{Probe, ProbeLocation, UsdtProbes};

use crate::{Form, Search};

impl Search<'_> {
    /// Writes the USDT probes that match the pattern, or all of them.
    ///
    /// # Errors
    /// If none matches, if the first file can't be read, or if writing fails.
    pub fn usdt_probes(
        &self,
        files: &Files,
        pattern: Option<&ProbePattern>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let mut shown = 0;
        self.each_file(files, Depth::Notes, |file| {
            let mut probes = self.read(file)?;
            probes.retain(|probe| {
                pattern.is_none_or(|pattern| pattern.matches(&probe.provider, &probe.name))
            });
            probes.order_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
            shown += probes.len();
            if self.form == Form::Json {
                write_json(file, &probes, out)
            } else {
                self.write_text(file, &probes, out)
            }
        })?;
        if shown > 0 {
            return Ok(());
        }
        let note = format!(
            "{} has no USDT probes; SPDK has them if it was configured with --with-usdt, Open \
             vSwitch with --enable-usdt-probes",
            self.place
        );
        self.nothing_shown(
            files,
            pattern.is_some(),
            || self.no_usdt_probe(files),
            &note,
        )
    }

    /// Returns the error that no probe matches the pattern. Names are gathered only now, since
    /// there may be many.
    fn no_usdt_probe(&self, files: &Files) -> anyhow::Result<anyhow::Error> {
        let mut known = Vec::new();
        self.each_file(files, Depth::Notes, |file| {
            let probes = UsdtProbes::read_with(&file.image()?, &file.code()?).probes;
            known.extend(
                probes
                    .iter()
                    .map(|probe| (probe.provider.to_string(), probe.name.to_string())),
            );
            Ok(())
        })?;
        let more = "; --functions lists its functions";
        Ok(self.no_match_in_groups("USDT probe", &known, more))
    }

    /// Returns the probes of a file; reports invalid notes.
    fn read(&self, file: &ElfFile) -> anyhow::Result<Vec<Probe>> {
        let image = file.image()?;
        let mut probes = UsdtProbes::read_with(&image, &file.code()?);
        if !probes.wanted_symbols().is_empty() {
            let whole = file.whole()?;
            let debug = whole.debug_file();
            let debug = debug.as_ref().and_then(|debug| debug.image().ok());
            probes.resolve(&whole.image()?, debug.as_ref());
        }
        if let Some(first) = probes.faults.first() {
            self.observer.note(&format!(
                "{}: left out {}; the first: {first}",
                printable(file.path()),
                counted(probes.broken as u64, "invalid USDT note")
            ));
        }
        Ok(probes.probes)
    }

    fn write_text(
        &self,
        file: &ElfFile,
        probes: &[Probe],
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        if probes.is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", printable(file.path()))?;
        let width = |probe: &Probe| probe.provider.chars().count() + 1 + probe.name.chars().count();
        let width = probes.iter().map(width).max().unwrap_or_default();
        for probe in probes {
            let name = format!("{}:{}", probe.provider, probe.name);
            let places = counted(probe.places.len() as u64, "place");
            let semaphore = if has_semaphore(probe) {
                "semaphore"
            } else {
                ""
            };
            let (args, shown) = match self.form {
                Form::TextWithPlaces => (String::new(), probe.places.as_slice()),
                _ => (first_args(probe), [].as_slice()),
            };
            write_line(
                out,
                &format!("  {name:width$}  {places:10}  {semaphore:9}  {args}"),
            )?;
            for place in shown {
                let offset = place.at.offset().to_string();
                write_line(out, &format!("    {offset:<10}  {}", args_text(place)))?;
            }
        }
        Ok(())
    }
}

fn write_line(out: &mut dyn Write, line: &str) -> std::io::Result<()> {
    writeln!(out, "{}", printable::text(line.trim_end().as_bytes()))
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
fn write_json(file: &ElfFile, probes: &[Probe], out: &mut dyn Write) -> anyhow::Result<()> {
    for probe in probes {
        let head = json!({
            "kind": "usdt",
            "provider": probe.provider,
            "name": probe.name,
            "file": printable(file.path()),
            "semaphore": has_semaphore(probe),
        });
        let head = text::json::document("list.usdt", &head);
        write!(out, "{},\"places\":[", head.trim_end_matches('}'))?;
        for (index, place) in probe.places.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(
                out,
                "{comma}{}",
                printable::json_document(place_json(place).to_string())
            )?;
        }
        writeln!(out, "]}}")?;
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
