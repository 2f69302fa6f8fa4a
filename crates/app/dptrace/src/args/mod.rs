//! Options that several commands share, as typed and as resolved.

mod bytes;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod mistaken;
pub(crate) mod objects;
pub(crate) mod process;
pub(crate) mod requests;
pub(crate) mod specs;

use clap::Arg;

pub(crate) use bytes::{bytes, check_buffer};

/// Returns a function for `mut_args` that makes an option required. Unlike `mut_arg`, this keeps the
/// order of the options.
pub(crate) fn required(id: &'static str) -> impl FnMut(Arg) -> Arg {
    move |arg| {
        if arg.get_id() == id {
            arg.required(true)
        } else {
            arg
        }
    }
}
