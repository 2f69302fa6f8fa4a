//! Helpers that read the memory of the process and of the kernel.

use super::{FAULT, number};
use crate::exec::Run;
use crate::fault::Wrong;
use crate::foreign::Owner;

impl Run<'_, '_> {
    /// Reads foreign memory. The program's own memory can be read as the kernel's.
    fn foreign(&self, owner: Owner, address: u64, bytes: u64) -> Option<Vec<u8>> {
        let own = self
            .machine
            .memory
            .peek(address, bytes)
            .filter(|_| owner == Owner::Kernel);
        own.map(<[u8]>::to_vec)
            .or_else(|| self.machine.foreign.read(owner, address, bytes))
    }

    /// Implements `bpf_probe_read_*(to, bytes, from)`: unreadable memory becomes zeros.
    pub(super) fn read_bytes(
        &mut self,
        owner: Owner,
        (to, bytes, from): (u64, u64, u64),
    ) -> Result<u64, Wrong> {
        let found = self.foreign(owner, from, bytes);
        let room = self.machine.memory.write(to, bytes)?;
        if let Some(found) = found {
            room.copy_from_slice(&found);
            return Ok(0);
        }
        room.fill(0);
        Ok(number(FAULT))
    }

    /// Implements `bpf_probe_read_*_str(to, bytes, from)`: bytes after the string's end are
    /// unchanged.
    pub(super) fn read_text(
        &mut self,
        owner: Owner,
        (to, bytes, from): (u64, u64, u64),
    ) -> Result<u64, Wrong> {
        let own = |machine: &crate::Machine| {
            let mut text = Vec::new();
            while (text.len() as u64) < bytes {
                let byte = machine
                    .memory
                    .peek(from.wrapping_add(text.len() as u64), 1)?[0];
                text.push(byte);
                if byte == 0 {
                    break;
                }
            }
            Some(text)
        };
        let own = if owner == Owner::Kernel {
            own(self.machine)
        } else {
            None
        };
        let found = own.or_else(|| self.machine.foreign.text(owner, from, bytes));
        let room = self.machine.memory.write(to, bytes)?;
        let Some(mut text) = found else {
            room.fill(0);
            return Ok(number(FAULT));
        };
        if let Some(last) = text.last_mut() {
            *last = 0;
        }
        room[..text.len()].copy_from_slice(&text);
        Ok(text.len() as u64)
    }

    pub(super) fn copy_from_user(
        &mut self,
        (to, bytes, from): (u64, u64, u64),
    ) -> Result<u64, Wrong> {
        if !self.sleepable || self.locks > 0 {
            return Err(Wrong::Argument(
                "a program waits for memory where it may not".to_owned(),
            ));
        }
        let found = self.machine.foreign.fetch(from, bytes);
        let room = self.machine.memory.write(to, bytes)?;
        match found {
            Some(found) => room.copy_from_slice(&found),
            None => room.fill(0),
        }
        Ok(
            if self
                .machine
                .foreign
                .read(Owner::Process, from, bytes)
                .is_some()
            {
                0
            } else {
                number(FAULT)
            },
        )
    }
}
