//! Tests of instructions, against the kernel, libbpf and LLVM.

mod common;
mod disasm;
mod encoding;
mod helpers_uapi;
mod kernel;
mod objdump;
mod object;
