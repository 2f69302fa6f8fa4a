//! What can be wrong with a text of the kernel.

use thiserror::Error;

/// A text that is not of the kernel's form. The caller knows the path, and puts it in front.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// A line of `/proc/PID/maps` that is not of the kernel's form.
    #[error("line {line} of the memory map: expected {expected}")]
    MapsLine {
        /// The line, counted from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A tracepoint's `format` text that is not of the kernel's form.
    #[error("line {line} of the tracepoint format: expected {expected}")]
    TracepointFormat {
        /// The line, counted from 1; the line after the last when something is missing.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
}
