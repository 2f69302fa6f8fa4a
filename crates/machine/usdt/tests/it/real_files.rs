//! Real files of this machine, with `readelf` of binutils as the witness.

use std::path::Path;

use elf::ElfImage;
use elf::symbols::Functions;
use elf::{Code, ProbePoint};
use usdt::UsdtProbes;

/// Files with probes that most machines have; more can be named in `DPTRACE_PROBE_FILES`, separated by colons.
const FILES: [&str; 6] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libstdc++.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib/postgresql/15/bin/postgres",
];

/// Note as either side prints it: provider, name, address, semaphore, arguments.
type Printed = (String, String, u64, u64, String);

/// Returns the text that `readelf` prints; `None` if it is not installed.
fn readelf(option: &str, path: &str) -> Option<String> {
    let output = testkit::command("readelf")
        .args([option, "-W", path])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn printed_by_readelf(text: &str) -> Vec<Printed> {
    let mut notes: Vec<Printed> = Vec::new();
    let hex = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
    for line in text.lines().map(str::trim) {
        if let Some((_, provider)) = line.split_once("Provider: ") {
            notes.push((provider.to_owned(), String::new(), 0, 0, String::new()));
        }
        let Some(note) = notes.last_mut() else {
            continue;
        };
        if let Some(name) = line.strip_prefix("Name: ") {
            name.clone_into(&mut note.1);
        } else if let Some(places) = line.strip_prefix("Location: ") {
            let mut parts = places.split(", ");
            note.2 = hex(parts.next().unwrap());
            note.3 = hex(parts.nth(1).unwrap().trim_start_matches("Semaphore: "));
        } else if let Some(args) = line.strip_prefix("Arguments:") {
            args.trim().clone_into(&mut note.4);
        }
    }
    notes.sort();
    notes
}

fn printed_by_us(probes: &UsdtProbes) -> Vec<Printed> {
    let mut notes = Vec::new();
    for probe in &probes.probes {
        for place in &probe.places {
            let args: Vec<String> = place
                .args
                .iter()
                .map(|arg| {
                    let (sign, float) = (
                        if arg.ty.signed { "-" } else { "" },
                        if arg.ty.float { "f" } else { "" },
                    );
                    format!("{sign}{}{float}@{}", arg.ty.size, arg.text)
                })
                .collect();
            let semaphore = place.semaphore.map_or(0, |semaphore| semaphore.vaddr.0);
            notes.push((
                probe.provider.to_string(),
                probe.name.to_string(),
                place.vaddr.0,
                semaphore,
                args.join(" "),
            ));
        }
    }
    notes.sort();
    notes
}

fn files() -> Vec<String> {
    let more = std::env::var("DPTRACE_PROBE_FILES").unwrap_or_default();
    let all = FILES
        .into_iter()
        .map(str::to_owned)
        .chain(more.split(':').map(str::to_owned));
    let (there, absent): (Vec<_>, Vec<_>) = all
        .filter(|path| !path.is_empty())
        .partition(|path| Path::new(path).exists());
    testkit::kernel::skip_if_permitted(
        "files",
        &format!("not on this machine: {}", absent.join(", ")),
    );
    there
}

#[test]
fn notes_are_those_that_readelf_prints() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let mut probes = UsdtProbes::read(&ElfImage::parse(&bytes).unwrap());
        assert_eq!(probes.broken, 0, "{path}: {:?}", probes.faults);
        let Some(text) = readelf("-n", &path) else {
            testkit::kernel::skip_if_permitted("readelf", "readelf is not installed");
            return;
        };
        let reported = printed_by_us(&probes);
        assert_eq!(reported, printed_by_readelf(&text), "{path}");
        probes.resolve(&ElfImage::parse(&bytes).unwrap(), None);
        let args = probes
            .probes
            .iter()
            .flat_map(|probe| &probe.places)
            .flat_map(|place| place.args.iter());
        let unreadable: Vec<String> = args
            .filter_map(|arg| arg.unreadable().map(|reason| format!("{arg}: {reason}")))
            .collect();
        eprintln!(
            "{path}: {} probes, {} notes, {} arguments unreadable",
            probes.probes.len(),
            reported.len(),
            unreadable.len()
        );
        for line in unreadable.iter().take(10) {
            eprintln!("  {line}");
        }
    }
}

#[test]
fn places_hold_the_instruction_that_a_probe_is() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let image = ElfImage::parse(&bytes).unwrap();
        for probe in UsdtProbes::read(&image).probes {
            for place in probe.places {
                let code = &bytes[place.at.offset().0 as usize..];
                // `nop` on x86-64, and in little-endian order on aarch64 (`_SDT_NOP` of sdt.h).
                assert!(
                    code.starts_with(&[0x90]) || code.starts_with(&[0x1f, 0x20, 0x03, 0xd5]),
                    "{path}: {}",
                    probe.name
                );
                assert_eq!(
                    image.address_map().to_vaddr(place.at.offset()),
                    Ok(place.vaddr)
                );
            }
        }
    }
}

#[test]
fn build_ids_and_functions_are_those_that_readelf_prints() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let image = ElfImage::parse(&bytes).unwrap();
        let functions = Functions::read(&image, None);
        let (Some(notes), Some(symbols)) = (readelf("-n", &path), readelf("-s", &path)) else {
            testkit::kernel::skip_if_permitted("readelf", "readelf is not installed");
            return;
        };
        if let Some(id) = image.build_id() {
            assert!(notes.contains(&format!("Build ID: {id}")), "{path}");
        }
        let mut reported: Vec<(u64, String)> = Vec::new();
        for line in symbols.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            if let [_, value, _, "FUNC" | "IFUNC", _, _, section, name, ..] = columns[..]
                && section != "UND"
            {
                let name = name.split('@').next().unwrap().to_owned();
                reported.push((u64::from_str_radix(value, 16).unwrap(), name));
            }
        }
        reported.sort();
        reported.dedup();
        let mut ours: Vec<(u64, String)> = functions
            .all()
            .iter()
            .map(|function| {
                (
                    function.vaddr.0,
                    function.name.split('@').next().unwrap().to_owned(),
                )
            })
            .collect();
        ours.sort();
        ours.dedup();
        eprintln!(
            "{path}: {} functions, {} skipped",
            ours.len(),
            functions.skipped()
        );
        let missing: Vec<_> = reported
            .iter()
            .filter(|function| ours.binary_search(function).is_err())
            .collect();
        let invented: Vec<_> = ours
            .iter()
            .filter(|function| reported.binary_search(function).is_err())
            .collect();
        assert!(
            missing.len() <= functions.skipped() && invented.is_empty(),
            "{path}: missing {missing:x?}, invented {invented:x?}"
        );
    }
}

/// The functions that the compilers and assemblers of this machine's files made are not taken for
/// hostile.
#[test]
fn the_functions_of_real_files_begin_with_an_instruction() {
    let own = std::env::current_exe().unwrap().display().to_string();
    for path in files().into_iter().chain([own]) {
        let bytes = std::fs::read(&path).unwrap();
        let image = ElfImage::parse(&bytes).unwrap();
        let functions = Functions::read(&image, None);
        let code = Code::with_functions(&image, &image, &functions);
        let mut refused = Vec::new();
        for function in functions.all() {
            if let Err(fault) = code.function(function, ProbePoint::Within(0)) {
                refused.push(format!("{}: {fault}", function.name));
            }
        }
        assert!(
            refused.is_empty(),
            "{path}: {} of {}: {refused:#?}",
            refused.len(),
            functions.all().len()
        );
    }
}
