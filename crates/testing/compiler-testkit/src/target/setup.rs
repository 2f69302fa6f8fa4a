//! Construction of a fake target.

use std::path::PathBuf;
use std::sync::Arc;

use bt_compiler::{FunctionPlace, KernelFacts, UsdtPlaces};
use elf::{CodePlace, ElfVaddr, FileOffset, PlaceFault, ProbePoint};
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;
use usdt::args::parse_args;
use usdt::{ProbeLocation, Semaphore};

use super::{FakeTarget, Names};

impl FakeTarget {
    /// Creates a machine without probes, whose kernel has all features.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            kernel: KernelFacts::ALL,
            btf: None,
            debug: Vec::new(),
            functions: Vec::new(),
            usdt: Vec::new(),
            tracepoints: Vec::new(),
            raw_tracepoints: Names::These(Vec::new()),
            kernel_functions: Names::These(Vec::new()),
            cgroup: None,
            pid: None,
            others: Vec::new(),
            most_samples: None,
            child: None,
            params: Vec::new(),
            no_kprobes: false,
            settings: Vec::new(),
            cpus: (2, 2),
            start_time: 0,
            pid_namespace: None,
            reports_reads: false,
            marks_hits: false,
            allows_unsafe: false,
        }
    }

    /// Adds a function of a file, at this address.
    #[must_use]
    pub fn with_function(mut self, file: &str, name: &str, vaddr: u64) -> Self {
        let offset = vaddr & 0xffff;
        let (path, shown, name) = (PathBuf::from(file), file.to_owned(), name.to_owned());
        let at = instruction(vaddr, ProbePoint::Within(0));
        self.functions.push(FunctionPlace {
            path,
            shown,
            name,
            offset,
            size: 64,
            vaddr,
            at,
        });
        self
    }

    /// Adds a USDT probe, with a location for each text of arguments, as in its note.
    #[must_use]
    pub fn with_usdt(mut self, file: &str, provider: &str, name: &str, places: &[&str]) -> Self {
        let place = |(args, number): (&&str, u64)| ProbeLocation {
            vaddr: ElfVaddr(0x1234 * number),
            at: CodePlace::unverified(FileOffset(0x1234 * number)),
            semaphore: Some(Semaphore {
                vaddr: ElfVaddr(0x5000),
                offset: FileOffset(0x5000),
            }),
            args: parse_args(self.arch, args).unwrap_or_default().into(),
        };
        let places = places.iter().zip(1..).map(place).collect();
        let (path, shown) = (PathBuf::from(file), file.to_owned());
        self.usdt.push(UsdtPlaces {
            path,
            shown,
            provider: provider.to_owned(),
            name: name.to_owned(),
            places,
        });
        self
    }

    /// Adds a tracepoint, with its fields in tracefs's format, after the common ones.
    #[must_use]
    pub fn with_tracepoint(mut self, category: &str, name: &str, fields: &str) -> Self {
        let common = [
            ("unsigned short", "type", 0, 2),
            ("unsigned char", "flags", 2, 1),
        ]
        .into_iter();
        let common = common.chain([
            ("unsigned char", "preempt_count", 3, 1),
            ("int", "pid", 4, 4),
        ]);
        let line = |(ty, name, offset, size): (&str, &str, u8, u8)| {
            format!(
                "\tfield:{ty} common_{name};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
                u8::from(ty == "int")
            )
        };
        let common: String = common.map(line).collect();
        let text = format!("name: {name}\nID: 7\nformat:\n{common}\n{fields}\nprint fmt: \"\"\n");
        self.tracepoints.push((
            category.to_owned(),
            Arc::new(TracepointFormat::parse(&text).unwrap()),
        ));
        self
    }
}

/// Returns the attach location. Every instruction has four bytes, addresses from 2^32 on belong to
/// no function, and no function can be entered in the second half of 64 bytes.
pub(super) fn instruction(vaddr: u64, aim: ProbePoint) -> Result<CodePlace, PlaceFault> {
    let begin = ElfVaddr(vaddr);
    let vaddr = ElfVaddr(if let ProbePoint::Within(within) = aim {
        vaddr.saturating_add(within)
    } else {
        vaddr
    });
    let before = ElfVaddr(vaddr.0 & !3);
    match before.checked_add(4) {
        _ if begin.0 >> 32 != 0 => Err(PlaceFault::NoFunction { vaddr }),
        after if before != vaddr => Err(PlaceFault::Inside {
            vaddr,
            before,
            after,
        }),
        _ if aim == ProbePoint::Return && vaddr.0 & 32 != 0 => Err(PlaceFault::NotEntry { vaddr }),
        _ => Ok(CodePlace::unverified(FileOffset(vaddr.0 & 0xffff))),
    }
}
