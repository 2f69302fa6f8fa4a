//! Helpers for ring buffers.

use bpf_insn::Helper;
use uapi::bpf::RB_AVAIL_DATA;

use super::{Args, number};
use crate::exec::Run;
use crate::fault::Wrong;
use crate::memory::What;

impl Run<'_, '_> {
    pub(super) fn ring(&mut self, helper: Helper, args: &Args<'_>) -> Result<u64, Wrong> {
        let map = self.machine.map_at(args.get(1)?)?;
        let machine = &mut *self.machine;
        if helper == Helper::RINGBUF_QUERY {
            return if args.get(2)? == u64::from(RB_AVAIL_DATA) {
                machine.maps[map].waiting()
            } else {
                Ok(0)
            };
        }
        if helper == Helper::RINGBUF_OUTPUT {
            let bytes = machine.memory.read(args.get(2)?, args.get(3)?)?.to_vec();
            let result = machine.maps[map].output(bytes, &mut machine.memory)?;
            return Ok(number(result));
        }
        if args.get(3)? != 0 {
            return Err(Wrong::Argument(
                "a record is reserved with flags".to_owned(),
            ));
        }
        machine.maps[map].reserve(args.get(2)?, &mut machine.memory)
    }

    pub(super) fn end_record(
        &mut self,
        helper: Helper,
        record: u64,
        flags: u64,
    ) -> Result<u64, Wrong> {
        if flags > 2 {
            return Err(Wrong::Argument(format!(
                "{helper} with the flags {flags:#x}"
            )));
        }
        let Some(What::Record(ring)) = self.machine.memory.region_kind(record).cloned() else {
            return Err(Wrong::Argument(format!(
                "{record:#x} is no open record of a ring"
            )));
        };
        let bytes = self.machine.memory.whole(record).to_vec();
        self.machine.memory.end(record);
        if helper == Helper::RINGBUF_SUBMIT
            && let Some(ring) = self
                .machine
                .maps
                .iter_mut()
                .find(|map| map.def.name == ring)
        {
            ring.submit(record, bytes);
        }
        Ok(0)
    }
}
