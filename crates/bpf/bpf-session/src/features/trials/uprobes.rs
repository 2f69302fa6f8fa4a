//! Trials of uprobes, at a place of our own.

use super::loading::load;
use crate::features::answer::Answer;
use crate::features::multi_is_sound;
use crate::features::place::{OwnPlaces, PROGRAM, Semaphore};
use crate::features::trials::loading::{bytes_of, load_spec, with_program};
use crate::features::trials::{attach, ourselves};
use bpf_insn::{Asm, Helper, Reg};
use host::PerfSource;
use std::io;
use std::path::Path;
use sys::bpf::{AttachType, Link, LoadError, Program, ProgramType, UprobeMulti};
use sys::perf::{PerfEvent, Uprobe};

/// Tries a probe at a place in a program, here in our own.
pub fn uprobes() -> Answer {
    at_own_place(false, false, || ())
}

/// Tries whether a semaphore is raised while a probe is attached, and lowered afterwards, with our
/// own.
pub fn semaphores() -> Answer {
    let semaphore = Semaphore::hold();
    let before = semaphore.value();
    let mut during = before;
    match at_own_place(false, true, || during = semaphore.value()) {
        Answer::Yes(_) if during != before + 1 => {
            Answer::no("the probe was attached, but its semaphore was not raised")
        }
        Answer::Yes(_) if semaphore.value() != before => {
            Answer::no("the semaphore was raised but not lowered again")
        }
        done => done,
    }
}

/// Tries whether a probe's program may sleep until a page of the process is read in.
pub fn sleepable_uprobes() -> Answer {
    at_own_place(true, false, || ())
}

/// Tries many places with one link; here one place of our own program.
pub fn uprobe_multi() -> Answer {
    with_program(ProgramType::Kprobe, AttachType::UprobeMulti, |program| {
        own_multi(program, false)
    })
}

/// Tries whether the process filter of such a link matches the process, not only its first thread.
pub fn uprobe_multi_filter() -> Answer {
    match load(ProgramType::Kprobe, AttachType::UprobeMulti, &[]) {
        Ok(program) if multi_is_sound(&program) => Answer::YES,
        Ok(_) => Answer::no(
            "there are no such links, or their filter is for a single thread: dptrace does not need them",
        ),
        Err(error) => Answer::from(Err(error)),
    }
}

/// Loads a sleepable program that calls a helper which only sleepable programs may call.
pub(in crate::features) fn sleepable_program(attach: AttachType) -> Result<Program, LoadError> {
    let mut asm = Asm::new();
    asm.mov(Reg::R1, Reg::R10)
        .add(Reg::R1, -8)
        .mov(Reg::R2, 8)
        .mov(Reg::R3, 0)
        .call(Helper::COPY_FROM_USER);
    asm.mov(Reg::R0, 0).exit();
    load_spec(ProgramType::Kprobe, attach, 0, true, &bytes_of(asm))
}

/// Attaches to a place in our own program as a session would: with a multi-uprobe link if the
/// kernel has them, else with a perf event, which needs more capabilities on some kernels. `during`
/// is called while the program is attached.
fn at_own_place(sleepable: bool, semaphore: bool, during: impl FnOnce()) -> Answer {
    let is_multi = uprobe_multi_filter().is_yes();
    let way = if is_multi {
        AttachType::UprobeMulti
    } else {
        AttachType::None
    };
    let program = if sleepable {
        sleepable_program(way)
    } else {
        load(ProgramType::Kprobe, way, &[])
    };
    let attached = program.map(|program| {
        let link = if is_multi {
            own_multi(&program, semaphore)
        } else {
            attach(&program, || own_uprobe(semaphore))
        };
        during();
        link.into()
    });
    attached.into()
}

fn own_multi(program: &Program, semaphore: bool) -> io::Result<Link> {
    let places = OwnPlaces::find()?;
    let to = UprobeMulti {
        path: Path::new(PROGRAM),
        offsets: &[if semaphore {
            places.guarded
        } else {
            places.function
        }],
        semaphores: if semaphore { &[places.semaphore] } else { &[] },
        cookies: &[1],
        on_return: false,
        pid: std::process::id(),
    };
    Link::uprobe_multi(program, &to)
}

fn own_uprobe(semaphore: bool) -> io::Result<PerfEvent> {
    let missing = || io::Error::other("there is no perf event source called uprobe");
    let source = PerfSource::find("uprobe").ok_or_else(missing)?;
    let places = OwnPlaces::find()?;
    let (offset, semaphore) = if semaphore {
        (places.guarded, places.semaphore)
    } else {
        (places.function, 0)
    };
    let (kind, path) = (source.kind, Path::new(PROGRAM));
    PerfEvent::uprobe(
        &Uprobe {
            kind,
            return_bit: None,
            path,
            offset,
            semaphore,
        },
        ourselves(),
    )
}
