//! Scratch memory: values that do not fit on the stack.
//!
//! Each CPU has a few areas. A program can be interrupted by another one (or by the same one for
//! another thread) on its CPU, and these need not end in the order in which they began. So a
//! program takes an area by an exchange of its first word. Areas too large for a per-CPU map are in
//! an array of their own, CPU after CPU.

use bpf_insn::Reg::{R0, R1, R2, R7, R9, R10};
use bpf_insn::{AtomicOp, Helper, JumpOp, Label, MapDef, MapKind, Size, Width};

use super::{Emitter, SCRATCH};
use bt_abi::lost::LOST;

/// Name of the scratch map.
const MAP: &str = "scratch";
/// Name of the map for areas that are too large for it.
const LARGE_MAP: &str = "scratch_large";
/// Number of areas of each CPU.
const AREAS: u32 = 4;
/// Size in bytes of the word that is not 0 while an area is taken.
pub(super) const HEAD: u32 = 8;
/// Limit in bytes on an area of a per-CPU map: its largest value (`PCPU_MIN_UNIT_SIZE`).
pub(super) const MAX_PER_CPU_BYTES: u32 = 32 << 10;
/// Limit in bytes on an area. Each CPU has [`AREAS`] of them.
pub(crate) const MAX_AREA_BYTES: u32 = 256 << 10;

/// Greatest sizes in bytes of scratch memory that a script's programs need: programs with small
/// areas, and programs with large ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScratchSizes {
    small: u32,
    large: u32,
}

impl ScratchSizes {
    /// Adds the need of one program.
    pub(crate) fn add(&mut self, size: u32) {
        let of = if size > MAX_PER_CPU_BYTES {
            &mut self.large
        } else {
            &mut self.small
        };
        *of = size.next_multiple_of(8).max(*of);
    }

    /// Returns the maps for a machine that can have this number of CPUs.
    pub(crate) fn maps(self, cpus: u32) -> impl Iterator<Item = MapDef> {
        let small = MapDef::new(MAP, MapKind::PercpuArray, 4, self.small, AREAS);
        let large = MapDef::new(
            LARGE_MAP,
            MapKind::Array,
            4,
            self.large,
            AREAS.saturating_mul(cpus),
        );
        [small, large].into_iter().filter(|map| map.value_size > 0)
    }
}

impl Emitter<'_> {
    /// Takes a free area, or jumps to `busy`. The verifier follows the count of turns, which is in
    /// a register.
    /// ```text
    /// r7 = 0; for large areas: r9 = CPU * AREAS
    /// area: index = r7, for large areas + r9; r0 = lookup(scratch, index); if it is 0: goto busy
    /// if exchange([r0], 1) == 0: goto found
    /// r7 += 1; if r7 < AREAS: goto area; goto busy
    /// ```
    pub(super) fn take_scratch(&mut self, busy: Label) {
        let (found, next, taken) = (
            self.asm.label("found"),
            self.asm.label("area"),
            self.asm.label("taken"),
        );
        let index = self.slot();
        self.asm.comment("scratch memory");
        if self.needs.large_scratch {
            self.asm
                .call(Helper::GET_SMP_PROCESSOR_ID)
                .mov(R9, R0)
                .mul(R9, AREAS.cast_signed());
            self.asm
                .mov(R7, 0)
                .bind(next)
                .mov(R1, R7)
                .add(R1, R9)
                .store(Size::W, R10.at(index), R1);
        } else {
            self.asm
                .mov(R7, 0)
                .bind(next)
                .store(Size::W, R10.at(index), R7);
        }
        self.asm.load_map(
            R1,
            if self.needs.large_scratch {
                LARGE_MAP
            } else {
                MAP
            },
        );
        self.asm
            .mov(R2, R10)
            .add(R2, i32::from(index))
            .call(Helper::MAP_LOOKUP_ELEM)
            .jump_if(R0, JumpOp::Eq, 0, busy);
        if self.inputs.facts.kernel().exchange {
            self.asm
                .mov(R1, 1)
                .atomic(AtomicOp::Xchg, Width::W64, R0.at(0), R1)
                .jump_if(R1, JumpOp::Eq, 0, found);
        } else {
            // A program that runs between the two gives the area back before we go on: on such a
            // kernel programs can't be preempted, only interrupted.
            self.asm
                .load(Size::DW, R1, R0.at(0))
                .jump_if(R1, JumpOp::Ne, 0, taken);
            self.asm.store(Size::DW, R0.at(0), 1).jump(found);
        }
        self.asm
            .bind(taken)
            .add(R7, 1)
            .jump_if(R7, JumpOp::Lt, AREAS.cast_signed(), next)
            .jump(busy);
        self.asm.bind(found).store(Size::DW, R10.at(SCRATCH), R0);
    }

    pub(super) fn give_scratch(&mut self) {
        self.asm
            .load(Size::DW, R1, R10.at(SCRATCH))
            .store(Size::DW, R1.at(0), 0);
    }

    /// Adds one to the counter at this offset of [`LostCounters`](bt_abi::LostCounters). Uses r1
    /// and r2.
    pub(super) fn count(&mut self, counter: i16) {
        self.asm
            .comment("count what is lost")
            .load_data(R1, LOST, u32::from(counter.cast_unsigned()))
            .mov(R2, 1);
        self.asm.atomic(AtomicOp::Add, Width::W64, R1.at(0), R2);
    }
}
