//! Loads, stores and atomic operations.

use bpf_insn::{AtomicOp, Reg, Size, Width};

use super::{Frame, Run};
use crate::alu;
use crate::fault::Wrong;

impl Run<'_, '_> {
    pub(super) fn load(&self, address: u64, bytes: u64) -> Result<u64, Wrong> {
        let number = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(whole)
        };
        self.machine.memory.aligned(address, bytes, false)?;
        match self.machine.memory.read(address, bytes) {
            Ok(found) => Ok(number(found)),
            Err(wrong) => self
                .machine
                .foreign
                .object(address, bytes)
                .map(|found| number(&found))
                .ok_or(wrong),
        }
    }

    pub(super) fn store(&mut self, address: u64, size: Size, value: u64) -> Result<(), Wrong> {
        let bytes = usize::from(size.bytes());
        self.machine.memory.aligned(address, bytes as u64, false)?;
        let to = self.machine.memory.write(address, bytes as u64)?;
        to.copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        frame: &mut Frame,
        op: AtomicOp,
        width: Width,
        address: u64,
        src: Reg,
    ) -> Result<(), Wrong> {
        let (size, mask) = if width == Width::W64 {
            (Size::DW, u64::MAX)
        } else {
            (Size::W, u64::from(u32::MAX))
        };
        self.machine
            .memory
            .aligned(address, u64::from(size.bytes()), true)?;
        let operand = frame.get(src)? & mask;
        let expected = if op == AtomicOp::CmpXchg {
            frame.get(Reg::R0)? & mask
        } else {
            0
        };
        let old = self.load(address, u64::from(size.bytes()))?;
        self.store(address, size, alu::atomic(op, old, operand, expected))?;
        match op {
            AtomicOp::CmpXchg => frame.set(Reg::R0, old),
            AtomicOp::Add | AtomicOp::Or | AtomicOp::And | AtomicOp::Xor => {}
            _ => frame.set(src, old),
        }
        Ok(())
    }
}
