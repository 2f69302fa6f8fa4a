//! Parts that the tests of the program share.

pub(crate) mod args;
pub(crate) mod code;
mod compiler;
pub(crate) mod kernel;
pub(crate) mod library;
pub(crate) mod live;
pub(crate) mod program;
pub(crate) mod pty;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod scenes;
pub(crate) mod schema;
pub(crate) mod shared;
pub(crate) mod small;

pub(crate) use compiler::compile;
pub(crate) use program::{dptrace, printed};
