//! Errors in a text of the kernel.

use thiserror::Error;

/// A text that is not of the kernel's form. The caller prefixes the path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// A line of `/proc/PID/maps` that is not of the kernel's form.
    #[error("line {line} of the memory map: expected {expected}")]
    MapsLine {
        /// The line, counted from 1.
        line: usize,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// A tracepoint's `format` text that is not of the kernel's form.
    #[error("line {line} of the tracepoint format: expected {expected}")]
    TracepointFormat {
        /// The line, counted from 1; the line after the last if something is missing.
        line: usize,
        /// Description of the expected text.
        expected: &'static str,
    },
}
