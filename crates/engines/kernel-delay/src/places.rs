//! Places of triggers in the process's files: probes and functions.

use bpf_session::UprobePlace;
use elf::symbols::Functions;
use elf::{Code, ProbePoint};
use errors::usage;
use host::{Depth, ElfFile, stripped};
use observer::Observer;
use text::patterns::{did_you_mean_at_end, nearest, nearest_in_groups};
use text::printable::path as printable;
use usdt::UsdtProbes;

use crate::Subject;
use crate::live::UserPlaces;
use crate::trigger::Trigger;

/// Returns the places of a trigger in the process's files; empty for a trigger in the kernel.
pub fn trigger_places(
    subject: &Subject,
    trigger: &Trigger,
    observer: &Observer,
) -> anyhow::Result<UserPlaces> {
    match trigger {
        Trigger::Usdt { provider, probe } => usdt(subject, provider, probe, observer),
        Trigger::User {
            function: name,
            on_return,
        } => function(subject, name, *on_return, observer),
        Trigger::Tracepoint { .. } | Trigger::Kernel { .. } => Ok(Vec::new()),
    }
}

/// Returns a probe's places in all files of the process that have it.
fn usdt(
    subject: &Subject,
    provider: &str,
    probe: &str,
    observer: &Observer,
) -> anyhow::Result<UserPlaces> {
    let (mut found, mut known, mut broken) = (Vec::new(), Vec::new(), None);
    let left_out = |error| observer.note_left_out(error);
    subject
        .files()?
        .for_each(Depth::Notes, left_out, |file| -> anyhow::Result<()> {
            let probes = UsdtProbes::read_with(&file.image()?, &file.code()?);
            if let Some(first) = probes.faults.first() {
                broken.get_or_insert_with(|| {
                    format!("; {}: left out {first}", printable(file.path()))
                });
            }
            let places = probes
                .get(provider, probe)
                .map_or(&[][..], |probe| &probe.places);
            let place = |place: &usdt::ProbeLocation| UprobePlace {
                at: place.at,
                semaphore: place.semaphore.map(|semaphore| semaphore.offset.0),
                cookie: 0,
            };
            if !places.is_empty() {
                found.push((file.opened().to_owned(), places.iter().map(place).collect()));
            }
            known.extend(
                probes
                    .probes
                    .iter()
                    .map(|probe| (probe.provider.to_string(), probe.name.to_string())),
            );
            Ok(())
        })?;
    if found.is_empty() {
        let none = if known.is_empty() {
            "; it has no USDT probes at all"
        } else {
            ""
        };
        let wanted = format!("{provider}:{probe}");
        let names = known
            .iter()
            .map(|(provider, name)| (provider.as_str(), name.as_str()));
        let near = did_you_mean_at_end(&nearest_in_groups(
            Some(provider),
            probe,
            names,
            MAX_NEAR_NAMES,
        ));
        let broken = broken.unwrap_or_default();
        return Err(usage(format!(
            "the process has no USDT probe {wanted}{none}{broken} (a function is up:FUNCTION){near}"
        )));
    }
    Ok(found)
}

/// Functions of a file that have a name.
struct NamedFunctions {
    places: Vec<UprobePlace>,
    /// Names of all functions, if none has the one sought.
    names: Vec<String>,
    is_stripped: bool,
}

/// Finds a function's places in a file.
fn in_file(file: &ElfFile, name: &str, on_return: bool) -> anyhow::Result<NamedFunctions> {
    let debug = file.debug_file();
    let debug = debug.as_ref().and_then(|debug| debug.image().ok());
    let image = file.image()?;
    let functions = Functions::read(&image, debug.as_ref());
    let code = Code::with_functions(&image, &image, &functions);
    let aim = if on_return {
        ProbePoint::Return
    } else {
        ProbePoint::Within(0)
    };
    let place = |function: &elf::symbols::Function<'_>| match code.function(function, aim) {
        Ok(at) => Ok(UprobePlace {
            at,
            semaphore: None,
            cookie: 0,
        }),
        Err(fault) => Err(usage(format!("the trigger {name}: {fault}"))),
    };
    if let Some(choice) = functions.choice(name) {
        return Err(usage(format!(
            "the trigger {name}: {choice}; {}",
            choice.hint()
        )));
    }
    let places: Vec<UprobePlace> = functions
        .named(name)
        .map(place)
        .collect::<anyhow::Result<_>>()?;

    let names = if places.is_empty() {
        let all = functions.all().iter();
        all.map(|function| function.display_name().into_owned())
            .collect()
    } else {
        Vec::new()
    };
    Ok(NamedFunctions {
        places,
        names,
        is_stripped: functions.is_stripped(),
    })
}

/// Returns a function's places in the first file of the process that has it.
fn function(
    subject: &Subject,
    name: &str,
    on_return: bool,
    observer: &Observer,
) -> anyhow::Result<UserPlaces> {
    let (mut found, mut known, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let left_out = |error| observer.note_left_out(error);
    subject.files()?.for_each(
        Depth::Whole,
        left_out,
        |file: &ElfFile| -> anyhow::Result<()> {
            if !found.is_empty() {
                return Ok(());
            }
            let functions = in_file(file, name, on_return)?;
            if functions.places.is_empty() {
                if functions.is_stripped {
                    without.push(printable(file.path()));
                }
                known.extend(functions.names);
            } else {
                found.push((file.opened().to_owned(), functions.places));
            }
            Ok(())
        },
    )?;
    if found.is_empty() {
        let near = did_you_mean_at_end(&nearest(
            name,
            known.iter().map(String::as_str),
            MAX_NEAR_NAMES,
        ));
        // The program comes first, so it is the file to name.
        let stripped = without
            .first()
            .map_or_else(String::new, |file| format!("; {}", stripped(file)));
        return Err(usage(format!(
            "the process has no function {name}{stripped}{near}"
        )));
    }
    Ok(found)
}

/// Maximum number of near names listed.
const MAX_NEAR_NAMES: usize = 3;
