//! Writes what a reader of a target's memory touches, and nothing else of it, as text: for tests on real structures.
//!
//! `memory_image PID VERSION NAME=ADDRESS...`: the version is SPDK's, for the layouts; the names are those of the variables that the
//! built-in object specs begin with, at their addresses in the process (hexadecimal). The text goes to standard output: lines of an
//! address and the bytes there, both hexadecimal, after lines `# NAME=ADDRESS` and `# VERSION`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use alive::{Addresses, Memory, Program, compile};
use live_memory::{Cause, Image, Unreadable, define_types};
use objects::layouts::layout_text;
use typeinfo::{Arch, TypeStore};

/// Members are at most two pointers long. What is read in longer pieces is text.
const LONGEST_MEMBER: usize = 16;

/// The memory of a process, and a copy of what was read of it.
struct Copied {
    memory: File,
    members: RefCell<Image>,
    /// Without what is behind the end of each text: that is nobody's business.
    texts: RefCell<Image>,
}

impl Memory for Copied {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let read = self.memory.read_exact_at(into, address);
        read.map_err(|_| Unreadable::new(address, into.len(), Cause::NotMapped))?;
        if into.len() <= LONGEST_MEMBER {
            self.members.borrow_mut().write(address, into);
            return Ok(());
        }
        let end = into.iter().position(|byte| *byte == 0).unwrap_or(into.len());
        let mut text = into.to_vec();
        text[end..].fill(0);
        self.texts.borrow_mut().write(address, &text);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(pid), Some(version)) = (args.next(), args.next()) else {
        return Err("usage: memory_image PID VERSION NAME=ADDRESS...".into());
    };
    let mut roots = BTreeMap::new();
    for arg in args {
        let (name, address) = arg.split_once('=').ok_or("expected NAME=ADDRESS")?;
        roots.insert(name.to_owned(), u64::from_str_radix(address.trim_start_matches("0x"), 16)?);
    }
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, &layout_text(version.parse()?)).map_err(|wrong| wrong[0].message.clone())?;
    let copied = Copied {
        memory: File::open(format!("/proc/{pid}/mem"))?,
        members: RefCell::default(),
        texts: RefCell::default(),
    };
    let globals = Addresses(|name: &str| roots.get(name).copied());
    let program = Program::new(types, &globals);
    for spec in objects::built_in()? {
        if spec.alive.is_empty() {
            continue;
        }
        match compile(&spec, &program) {
            Ok(compiled) => eprintln!("{}: {}", spec.name, compiled.read(&copied).len()),
            Err(misfits) => eprintln!("{}: {misfits:?}", spec.name),
        }
    }
    println!("# {version}");
    for (name, address) in &roots {
        println!("# {name}={address:#x}");
    }
    let mut image = copied.texts.into_inner();
    for (address, bytes) in copied.members.into_inner().segments() {
        image.write(address, bytes);
    }
    for (address, bytes) in image.segments() {
        print!("{address:x} ");
        for byte in bytes {
            print!("{byte:02x}");
        }
        println!();
    }
    Ok(())
}
