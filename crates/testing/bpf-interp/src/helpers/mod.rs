//! The kernel's helper functions, as documented in `linux/bpf.h` and implemented in
//! `kernel/bpf/helpers.c`, `kernel/trace/bpf_trace.c` and `kernel/bpf/ringbuf.c`.

mod reads;
mod ring;

use bpf_insn::Helper;
use uapi::bpf::USER_STACK;

use crate::exec::Run;
use crate::fault::{Fault, Wrong};
use crate::foreign::Owner;
use crate::machine::{COMM_BYTES, Printed};
use crate::maps::INVALID;
use crate::memory::What;

/// `-EFAULT`.
const FAULT: i64 = -14;
/// `-E2BIG`.
const TOO_MANY: i64 = -7;
/// `BPF_MAX_LOOPS` of `linux/bpf.h`.
const MAX_LOOP_TURNS: u64 = 1 << 23;
/// Nanoseconds per jiffy at 250 Hz.
const JIFFY: u64 = 4_000_000;

/// Failure of a helper: at the calling instruction, or within a function that the helper calls
/// back.
pub(crate) enum Failed {
    Here(Wrong),
    There(Fault),
}

impl From<Wrong> for Failed {
    fn from(wrong: Wrong) -> Self {
        Self::Here(wrong)
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::There(fault)
    }
}

/// Arguments of a helper, each read only when used.
struct Args<'a>(&'a [Option<u64>]);

impl Args<'_> {
    /// Returns the argument with this number, from 1.
    fn get(&self, number: usize) -> Result<u64, Wrong> {
        let register = bpf_insn::Reg::from_code(number as u8).unwrap_or(bpf_insn::Reg::R1);
        self.0
            .get(number - 1)
            .copied()
            .flatten()
            .ok_or(Wrong::Register(register))
    }
}

fn number(value: i64) -> u64 {
    value.cast_unsigned()
}

impl Run<'_, '_> {
    /// Calls a helper, and returns its value for r0.
    pub(crate) fn helper(&mut self, helper: Helper, args: &[Option<u64>]) -> Result<u64, Failed> {
        let args = Args(args);
        let a = |number| args.get(number);
        Ok(match helper {
            Helper::LOOP => return self.bpf_loop(&args),
            Helper::FOR_EACH_MAP_ELEM => return self.for_each(&args),
            Helper::MAP_LOOKUP_ELEM | Helper::MAP_LOOKUP_PERCPU_ELEM => {
                self.lookup(helper, &args)?
            }
            Helper::MAP_UPDATE_ELEM => self.update(&args)?,
            Helper::MAP_DELETE_ELEM => {
                let (map, key) = self.map_and_key(&args)?;
                let machine = &mut *self.machine;
                number(machine.maps[map].delete(&key, &mut machine.memory)?)
            }
            Helper::PROBE_READ_KERNEL => self.read_bytes(Owner::Kernel, (a(1)?, a(2)?, a(3)?))?,
            Helper::PROBE_READ_USER => self.read_bytes(Owner::Process, (a(1)?, a(2)?, a(3)?))?,
            Helper::PROBE_READ_KERNEL_STR => {
                self.read_text(Owner::Kernel, (a(1)?, a(2)?, a(3)?))?
            }
            Helper::PROBE_READ_USER_STR => self.read_text(Owner::Process, (a(1)?, a(2)?, a(3)?))?,
            Helper::COPY_FROM_USER => self.copy_from_user((a(1)?, a(2)?, a(3)?))?,
            Helper::RINGBUF_RESERVE | Helper::RINGBUF_QUERY | Helper::RINGBUF_OUTPUT => {
                self.ring(helper, &args)?
            }
            Helper::RINGBUF_SUBMIT | Helper::RINGBUF_DISCARD => {
                self.end_record(helper, a(1)?, a(2)?)?
            }
            Helper::GET_CURRENT_COMM => self.comm(a(1)?, a(2)?)?,
            Helper::GET_STACK => self.stack((a(1)?, a(2)?, a(3)?), a(4)?)?,
            Helper::GET_NS_CURRENT_PID_TGID => self.namespaced(a(3)?, a(4)?)?,
            Helper::TRACE_VPRINTK => self.print((a(1)?, a(2)?), (a(3)?, a(4)?))?,
            Helper::STRNCMP => self.strncmp(a(1)?, a(2)?, a(3)?)?,
            Helper::D_PATH => self.path(a(1)?, (a(2)?, a(3)?))?,
            Helper::SEND_SIGNAL | Helper::SEND_SIGNAL_THREAD => {
                let signal = a(1)?.cast_signed();
                self.machine
                    .signals
                    .push((signal, helper == Helper::SEND_SIGNAL_THREAD));
                0
            }
            Helper::GET_FUNC_IP | Helper::GET_ATTACH_COOKIE => {
                if a(1)? != self.context {
                    return Err(Wrong::Argument(format!("{helper} wants the context")).into());
                }
                if helper == Helper::GET_FUNC_IP {
                    self.machine.function
                } else {
                    self.machine.cookie
                }
            }
            Helper::GET_SOCKET_COOKIE => a(1).map(|_| self.machine.socket_cookie)?,
            _ => self.simple(helper)?,
        })
    }

    /// Calls helpers without arguments.
    fn simple(&mut self, helper: Helper) -> Result<u64, Wrong> {
        let machine = &mut *self.machine;
        let both = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        Ok(match helper {
            Helper::KTIME_GET_NS | Helper::KTIME_GET_BOOT_NS | Helper::KTIME_GET_TAI_NS => {
                machine.now()
            }
            Helper::JIFFIES64 => machine.now() / JIFFY,
            Helper::GET_PRANDOM_U32 => u64::from(machine.next_random()),
            Helper::GET_SMP_PROCESSOR_ID => machine.cpu as u64,
            Helper::GET_NUMA_NODE_ID => machine.numa_node,
            Helper::GET_CURRENT_PID_TGID => both(machine.task.tgid, machine.task.pid),
            Helper::GET_CURRENT_UID_GID => both(machine.task.gid, machine.task.uid),
            Helper::GET_CURRENT_TASK | Helper::GET_CURRENT_TASK_BTF => machine.task.address,
            Helper::GET_CURRENT_CGROUP_ID => machine.cgroup,
            _ => return Err(Wrong::Helper(helper)),
        })
    }

    /// Returns the map and the key given by the first two arguments.
    fn map_and_key(&mut self, args: &Args<'_>) -> Result<(usize, Vec<u8>), Wrong> {
        let map = self.machine.map_at(args.get(1)?)?;
        let size = u64::from(self.machine.maps[map].def.key_size);
        let key = self.machine.memory.read(args.get(2)?, size)?.to_vec();
        Ok((map, key))
    }

    fn lookup(&mut self, helper: Helper, args: &Args<'_>) -> Result<u64, Wrong> {
        let (map, key) = self.map_and_key(args)?;
        let cpu = if helper == Helper::MAP_LOOKUP_ELEM {
            self.machine.cpu
        } else {
            args.get(3)? as usize
        };
        self.machine.maps[map].lookup(&key, cpu)
    }

    fn update(&mut self, args: &Args<'_>) -> Result<u64, Wrong> {
        let (map, key) = self.map_and_key(args)?;
        let size = u64::from(self.machine.maps[map].def.value_size);
        let value = self.machine.memory.read(args.get(3)?, size)?.to_vec();
        let (flags, cpus) = (args.get(4)?, (self.machine.cpu, self.machine.cpus));
        let machine = &mut *self.machine;
        machine.maps[map]
            .update((&key, &value), flags, cpus, &mut machine.memory)
            .map(number)
    }

    /// Implements `bpf_loop(turns, function, context, flags)`.
    fn bpf_loop(&mut self, args: &Args<'_>) -> Result<u64, Failed> {
        let (turns, function) = (args.get(1)?, self.function_at(args.get(2)?)?);
        let (context, flags) = (args.get(3)?, args.get(4)?);
        if flags != 0 {
            return Ok(number(INVALID));
        }
        if turns > MAX_LOOP_TURNS {
            return Ok(number(TOO_MANY));
        }
        for turn in 0..turns {
            if self.call(function, &[turn, context])? != 0 {
                return Ok(turn + 1);
            }
        }
        Ok(turns)
    }

    /// Implements `bpf_for_each_map_elem(map, function, context, flags)`.
    fn for_each(&mut self, args: &Args<'_>) -> Result<u64, Failed> {
        let (map, function) = (
            self.machine.map_at(args.get(1)?)?,
            self.function_at(args.get(2)?)?,
        );
        let (context, flags) = (args.get(3)?, args.get(4)?);
        if flags != 0 {
            return Ok(number(INVALID));
        }
        let (handle, mut seen) = (self.machine.maps[map].handle, 0);
        for key in self.machine.maps[map].keys() {
            let value = self.machine.maps[map].lookup(&key, self.machine.cpu)?;
            if value == 0 {
                continue;
            }
            seen += 1;
            let name = self.machine.maps[map].def.name.clone();
            let key = self.machine.memory.add(What::Value(name), key);
            self.locks += 1;
            let stop = self.call(function, &[handle, key, value, context]);
            self.locks -= 1;
            self.machine.memory.end(key);
            if stop? != 0 {
                break;
            }
        }
        Ok(seen)
    }

    /// Writes the task's name and its NUL; bytes after it are unchanged (Linux 6.1, `strscpy`
    /// without padding).
    fn comm(&mut self, to: u64, bytes: u64) -> Result<u64, Wrong> {
        let mut name = self.machine.task.comm.clone().into_bytes();
        name.truncate(COMM_BYTES.min(bytes as usize).saturating_sub(1));
        name.push(0);
        let room = self.machine.memory.write(to, bytes)?;
        room[..name.len()].copy_from_slice(&name);
        Ok(0)
    }

    /// Implements `bpf_get_stack(context, to, bytes, flags)`: returns the number of bytes, and
    /// fills the rest with zeros.
    fn stack(&mut self, (context, to, bytes): (u64, u64, u64), flags: u64) -> Result<u64, Wrong> {
        if context != self.context {
            return Err(Wrong::Argument(
                "a stack is asked for without the context".to_owned(),
            ));
        }
        let machine = &mut *self.machine;
        let frames = if flags & u64::from(USER_STACK) == 0 {
            &machine.kernel_stack
        } else {
            &machine.user_stack
        };
        let room = machine.memory.write(to, bytes)?;
        room.fill(0);
        for (place, frame) in room.chunks_exact_mut(8).zip(frames) {
            place.copy_from_slice(&frame.to_le_bytes());
        }
        Ok(if frames.is_empty() {
            number(FAULT)
        } else {
            (frames.len() as u64 * 8).min(bytes & !7)
        })
    }

    /// Writes a `struct bpf_pidns_info`: thread, process.
    fn namespaced(&mut self, to: u64, bytes: u64) -> Result<u64, Wrong> {
        let (process, thread) = self.machine.namespaced;
        let room = self.machine.memory.write(to, bytes)?;
        if bytes != 8 {
            return Ok(number(INVALID));
        }
        room[..4].copy_from_slice(&thread.to_le_bytes());
        room[4..].copy_from_slice(&process.to_le_bytes());
        Ok(0)
    }

    fn print(
        &mut self,
        (format, length): (u64, u64),
        (values, bytes): (u64, u64),
    ) -> Result<u64, Wrong> {
        let format = self.machine.memory.read(format, length)?;
        let end = format.iter().position(|byte| *byte == 0);
        let Some(end) = end else {
            return Ok(number(INVALID));
        };
        let format = String::from_utf8_lossy(&format[..end]).into_owned();
        let values = if bytes == 0 {
            &[]
        } else {
            self.machine.memory.read(values, bytes)?
        };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let values = values.chunks_exact(8).map(word).collect();
        self.machine.printed.push(Printed { format, values });
        Ok(0)
    }

    /// Implements `bpf_strncmp(first, bytes, second)`.
    fn strncmp(&mut self, first: u64, bytes: u64, second: u64) -> Result<u64, Wrong> {
        for at in 0..bytes {
            let left = self.machine.memory.read(first + at, 1)?[0];
            let right = self.machine.memory.read(second + at, 1)?[0];
            if left != right || left == 0 {
                return Ok(number(i64::from(left) - i64::from(right)));
            }
        }
        Ok(0)
    }

    /// Implements `bpf_d_path(path, to, bytes)`: returns the length, NUL included.
    fn path(&mut self, path: u64, (to, bytes): (u64, u64)) -> Result<u64, Wrong> {
        let name = self.machine.paths.get(&path).cloned();
        let room = self.machine.memory.write(to, bytes)?;
        let Some(name) = name else {
            return Ok(number(INVALID));
        };
        let text = [name.as_bytes(), &[0]].concat();
        if text.len() > room.len() {
            // ENAMETOOLONG
            return Ok(number(-36));
        }
        room[..text.len()].copy_from_slice(&text);
        Ok(text.len() as u64)
    }
}
