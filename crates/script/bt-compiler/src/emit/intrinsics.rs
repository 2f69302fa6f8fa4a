//! Intrinsics: results of one helper or a few instructions. Numbers are in r0, other values in
//! memory.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R10};
use bpf_insn::{ByteOrder, Helper, JumpOp, Reg, Size, SwapBits};

use super::place::MemoryRef;
use super::{Emitter, failures};
use crate::hir::{Expr, Intrinsic};
use crate::ty::Ty;
use bpf_program::offset;
use bt_abi::bytes::{Inet, MacAddress, StackHead, TaskId, UserStackHead, UserSymbol};
use bt_abi::{Clock, FailureKind, StackMode};
use uapi::bpf::{USER_BUILD_ID, USER_STACK};

/// Offset of the first word in a callback's own frame.
const OWN_FRAME: i16 = -8;
/// Offset of the code segment in `struct pt_regs` of x86-64. Its low two bits are 3 in a process's
/// code.
const X86_CODE_SEGMENT: i16 = 136;
/// Offset of `pstate` in arm64's registers. Its low four bits are 0 in a process's code.
const ARM_STATE: i16 = 264;

impl Emitter<'_> {
    /// Sets r0 to an intrinsic's number. Most are one call; arguments are computed first.
    pub(super) fn intrinsic(&mut self, intrinsic: Intrinsic, args: &[Expr]) {
        match intrinsic {
            Intrinsic::Pid | Intrinsic::Tid => self.own_id(intrinsic == Intrinsic::Pid),
            Intrinsic::PidTid => self.helper(Helper::GET_CURRENT_PID_TGID),
            Intrinsic::Uid => {
                self.asm.call(Helper::GET_CURRENT_UID_GID).mov32(R0, R0);
            }
            Intrinsic::Gid => {
                self.asm.call(Helper::GET_CURRENT_UID_GID).rsh(R0, 32);
            }
            Intrinsic::Cpu => self.helper(Helper::GET_SMP_PROCESSOR_ID),
            Intrinsic::Now(Clock::Boot) => self.helper(Helper::KTIME_GET_BOOT_NS),
            Intrinsic::Now(Clock::Monotonic) => self.helper(Helper::KTIME_GET_NS),
            Intrinsic::Now(Clock::Tai) => self.helper(Helper::KTIME_GET_TAI_NS),
            Intrinsic::Jiffies => self.helper(Helper::JIFFIES64),
            Intrinsic::CurTask => self.helper(Helper::GET_CURRENT_TASK),
            Intrinsic::Cgroup => self.helper(Helper::GET_CURRENT_CGROUP_ID),
            Intrinsic::Random => self.helper(Helper::GET_PRANDOM_U32),
            Intrinsic::NumaNode => self.helper(Helper::GET_NUMA_NODE_ID),
            Intrinsic::Context => self.context_number(),
            Intrinsic::FuncIp => {
                let context = self.context_in(R1);
                self.asm.mov(R1, context).call(Helper::GET_FUNC_IP);
            }
            Intrinsic::UserMode => self.user_mode(),
            Intrinsic::Bswap(size) => self.swap(args, size),
            Intrinsic::Signal => self.signal(args, Helper::SEND_SIGNAL),
            Intrinsic::SignalThread => self.signal(args, Helper::SEND_SIGNAL_THREAD),
            Intrinsic::SocketCookie => self.socket_cookie(args),
            Intrinsic::StrLen => {
                if let Some(text) = self.first(args) {
                    self.strlen(text);
                }
            }
            Intrinsic::Contains | Intrinsic::Find => match args {
                [text, part] => self.find(text, part, intrinsic == Intrinsic::Find),
                _ => self.impossible("a search in a string without its two arguments"),
            },
            Intrinsic::MemCmp => self.memcmp(args),
            Intrinsic::WriteUser => self.write_user(args),
            Intrinsic::Comm
            | Intrinsic::ReadStr(_)
            | Intrinsic::CutStr
            | Intrinsic::Concat
            | Intrinsic::ReadBuf(_)
            | Intrinsic::Stack
            | Intrinsic::Usym
            | Intrinsic::Inet4
            | Intrinsic::InetBytes
            | Intrinsic::InetFamily
            | Intrinsic::Mac(_)
            | Intrinsic::Path => {
                self.impossible("a function that gives a value in memory where a number is wanted");
            }
        }
    }

    /// Sends the signal of the argument.
    fn signal(&mut self, args: &[Expr], helper: Helper) {
        self.argument(args);
        self.asm.mov(R1, R0).call(helper);
        self.failed_if_negative(failures::helper_failure(helper));
    }

    fn helper(&mut self, helper: Helper) {
        self.asm.call(helper);
    }

    /// Returns the first argument, which the checker has made sure of.
    #[track_caller]
    pub(super) fn first<'e>(&mut self, args: &'e [Expr]) -> Option<&'e Expr> {
        if args.is_empty() {
            self.impossible("a function without its argument");
        }
        args.first()
    }

    /// Sets r0 to the first argument.
    fn argument(&mut self, args: &[Expr]) {
        if let Some(arg) = self.first(args) {
            self.scalar(arg);
        }
    }

    /// Sets r0 to the process's or thread's id in our PID namespace.
    fn own_id(&mut self, process: bool) {
        let Some(namespace) = self.inputs.facts.pid_namespace() else {
            self.asm.call(Helper::GET_CURRENT_PID_TGID);
            if process {
                self.asm.rsh(R0, 32);
            } else {
                self.asm.mov32(R0, R0);
            }
            return;
        };
        self.temporary(|emitter| {
            let info = emitter.stack(8);
            emitter.id_in(namespace, process, info);
        });
    }

    /// Sets r0 to the process's or thread's id in a PID namespace, 0 if it is in another one. Uses
    /// 8 bytes at `info`.
    pub(super) fn id_in(&mut self, (device, inode): (u64, u64), process: bool, info: MemoryRef) {
        // struct bpf_pidns_info: u32 pid (the thread), u32 tgid (the process).
        self.zero(info, 8);
        self.asm.constant(R1, device).constant(R2, inode);
        self.address(info, R3);
        self.asm.mov(R4, 8).call(Helper::GET_NS_CURRENT_PID_TGID);
        let part = if process { info.at(4) } else { info };
        self.load(
            part,
            &Ty::Int {
                size: 4,
                signed: false,
            },
            R0,
        );
    }

    /// Sets r0 to the context's address as a number.
    fn context_number(&mut self) {
        let context = self.context_in(R0);
        self.number_of(context);
    }

    /// Sets r0 to an address of ours as a number. The verifier allows no arithmetic with the
    /// pointer itself.
    pub(super) fn number_of(&mut self, pointer: Reg) {
        self.temporary(|emitter| {
            let to = emitter.stack(8);
            // A callback stores the pointer in its own frame, which has no other use. It may store
            // none in the program's.
            let from = if emitter.callbacks > 0 {
                OWN_FRAME
            } else {
                emitter.slot()
            };
            emitter.asm.store(Size::DW, R10.at(from), pointer);
            emitter.address(to, R1);
            emitter
                .asm
                .mov(R2, 8)
                .mov(R3, R10)
                .add(R3, i32::from(from))
                .call(Helper::PROBE_READ_KERNEL);
            emitter.load(
                to,
                &Ty::Int {
                    size: 8,
                    signed: false,
                },
                R0,
            );
        });
    }

    fn user_mode(&mut self) {
        let (yes, done) = (self.asm.label("user"), self.asm.label("mode"));
        let context = self.context_in(R1);
        match self.context.arch {
            uapi::Arch::X86_64 => {
                self.asm
                    .load(Size::DW, R0, context.at(X86_CODE_SEGMENT))
                    .and(R0, 3)
                    .jump_if(R0, JumpOp::Ne, 0, yes);
            }
            uapi::Arch::Aarch64 => {
                self.asm
                    .load(Size::DW, R0, context.at(ARM_STATE))
                    .and(R0, 15)
                    .jump_if(R0, JumpOp::Eq, 0, yes);
            }
        }
        self.asm
            .mov(R0, 0)
            .jump(done)
            .bind(yes)
            .mov(R0, 1)
            .bind(done);
    }

    fn swap(&mut self, args: &[Expr], size: u8) {
        self.argument(args);
        let bits = match size {
            2 => SwapBits::B16,
            4 => SwapBits::B32,
            8 => SwapBits::B64,
            // A single byte has nothing to swap.
            1 => return,
            _ => {
                self.impossible("a number of a size that no machine has");
                return;
            }
        };
        self.asm.swap(ByteOrder::Big, bits, R0);
    }

    /// Writes an intrinsic's value to `place`, which has room for a value of type `to`.
    pub(super) fn intrinsic_value(
        &mut self,
        intrinsic: Intrinsic,
        args: &[Expr],
        to: &Ty,
        place: MemoryRef,
    ) {
        match intrinsic {
            Intrinsic::Comm => {
                // Some kernels leave the room behind the name unset (`strscpy` up to Linux 6.2),
                // and keys are compared whole.
                let kept = self.shown != Some(place.base);
                self.pad(place, if kept { 0 } else { 16 }, to.size());
                self.address(place, R1);
                self.asm.mov(R2, 16).call(Helper::GET_CURRENT_COMM);
            }
            Intrinsic::ReadStr(space) => self.read_str(args, space, to, place),
            Intrinsic::CutStr => self.cut(args, to, place),
            Intrinsic::Concat => self.concat(args, to, place),
            Intrinsic::ReadBuf(space) => self.read_buf(args, space, to, place),
            Intrinsic::Stack => self.stack_trace(to, place),
            Intrinsic::Path => self.path(args, to.size(), place),
            Intrinsic::Usym => {
                self.argument(args);
                self.store(place.part(offset!(UserSymbol, address)), Size::DW, R0);
                self.task_id(place.part(offset!(UserSymbol, task)));
            }
            Intrinsic::Inet4 | Intrinsic::InetBytes | Intrinsic::InetFamily => {
                self.inet(intrinsic, args, place);
            }
            Intrinsic::Mac(space) => {
                if let Some(addr) = self.first(args) {
                    self.read_value(addr, space, size_of::<MacAddress>() as u32, place);
                }
            }
            _ => {
                self.impossible("a function that gives a number where a value in memory is wanted");
            }
        }
    }

    /// Writes a [`TaskId`]: the two halves of the helper's result, swapped.
    fn task_id(&mut self, place: MemoryRef) {
        const { assert!(offset!(TaskId, pid) == 0 && offset!(TaskId, tid) == 4) };
        self.asm
            .call(Helper::GET_CURRENT_PID_TGID)
            .mov(R2, R0)
            .rsh(R2, 32)
            .lsh(R0, 32)
            .or(R0, R2);
        self.store(place, Size::DW, R0);
    }

    /// Writes a stack. For a user stack, process and thread come first; then the helper's result
    /// (bytes, or an error), then the frames.
    /// ```text
    /// user: place = (process, thread)
    /// r0 = get_stack(context, place + head + 8, depth * frame, flags)
    /// [place + head] = r0; count an error
    /// ```
    fn stack_trace(&mut self, to: &Ty, place: MemoryRef) {
        let Ty::Stack { user, mode, depth } = to else {
            self.impossible("a stack that is no stack");
            return;
        };
        let head = if *user {
            self.task_id(place.part(offset!(UserStackHead, task)));
            place.part(offset!(UserStackHead, stack))
        } else {
            place
        };
        let context = self.context_in(R1);
        self.asm.mov(R1, context);
        self.address(head.at(size_of::<StackHead>() as u32), R2);
        let flags = match (user, mode) {
            (true, StackMode::BuildId) => (USER_STACK | USER_BUILD_ID).cast_signed(),
            (true, _) => USER_STACK.cast_signed(),
            (false, _) => 0,
        };
        self.asm
            .mov(R3, (depth * mode.frame_bytes()).cast_signed())
            .mov(R4, flags);
        self.asm.call(Helper::GET_STACK);
        self.store(head.part(offset!(StackHead, length)), Size::DW, R0);
        self.failed_if_negative(if *user {
            FailureKind::UserStack
        } else {
            FailureKind::KernelStack
        });
    }

    /// Prints a line to the kernel's trace pipe.
    /// ```text
    /// values[i] = each number, or the address of each string
    /// text = the format
    /// trace_vprintk(text, length, values, 8 * count)
    /// ```
    pub(super) fn trace_pipe(&mut self, format: &[u8], args: &[Expr]) {
        let values = self.stack(8 * (args.len() as u32).max(1));
        for (index, arg) in args.iter().enumerate() {
            if arg.ty.is_scalar() {
                self.temporary(|emitter| emitter.scalar(arg));
            } else {
                let text = self.place_of(arg);
                self.address(text, R0);
            }
            self.store(values.at(index as u32 * 8), Size::DW, R0);
        }
        let text = self.mem(format.len() as u32);
        self.literal(text, format, format.len() as u32);
        self.address(text, R1);
        self.asm.mov(R2, format.len() as i32);
        if args.is_empty() {
            self.asm.mov(R3, 0);
        } else {
            self.address(values, R3);
        }
        self.asm
            .mov(R4, 8 * args.len() as i32)
            .call(Helper::TRACE_VPRINTK);
    }

    /// Writes an [`Inet`].
    fn inet(&mut self, intrinsic: Intrinsic, args: &[Expr], place: MemoryRef) {
        let (version, address) = (
            place.part(offset!(Inet, version)),
            place.part(offset!(Inet, address)),
        );
        self.zero(place, size_of::<Inet>() as u32);
        match (intrinsic, args) {
            (Intrinsic::InetBytes, [value]) => {
                let size = value.ty.size().min(16);
                self.store(
                    version,
                    Size::W,
                    if size > 4 { Inet::V6 } else { Inet::V4 }.cast_signed(),
                );
                self.write_bytes(value, size, address);
            }
            (Intrinsic::InetFamily, [_, value]) | (Intrinsic::Inet4, [value]) => {
                self.store(version, Size::W, Inet::V4.cast_signed());
                self.scalar(value);
                self.store(address, Size::W, R0);
            }
            _ => self.impossible("ntop without its arguments"),
        }
    }
}
