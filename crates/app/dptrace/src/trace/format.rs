//! The names of output formats on the command line.

use clap::ValueEnum;
use records::Form;

/// Values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Text, as SPDK's annotation script prints it
    Text,
    /// The columns of spdk_trace, with exact times
    Spdk,
    /// One document with the fields of spdk_trace -j and annotations; dptrace can read it back
    Json,
    /// One JSON object on each line, each complete in itself
    Ndjson,
    /// Comma-separated values, with a header
    Csv,
}

impl FormatName {
    /// Returns the output form.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::Text => Form::Text,
            Self::Spdk => Form::Spdk,
            Self::Json => Form::Json,
            Self::Ndjson => Form::Ndjson,
            Self::Csv => Form::Csv,
        }
    }
}
