//! Captures: folders with a trace, the kernel's events and the objects of a process over some time.

pub(crate) mod open;
