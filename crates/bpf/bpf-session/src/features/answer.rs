//! The result of a trial.

use std::io;

use sys::bpf::LoadError;

/// Answer to the question whether something works on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Success, with an optional remark.
    Yes(String),
    /// Refusal by the kernel.
    No {
        /// Reason of the kernel.
        why: String,
        /// True if a capability is missing; then it is unknown whether the kernel supports the
        /// feature.
        denied: bool,
    },
    /// Failure to try it, with the reason.
    Unknown(String),
}

impl Answer {
    /// Success without a remark.
    pub const YES: Self = Self::Yes(String::new());

    /// Creates a refusal for a reason other than missing capabilities.
    pub fn no(why: impl Into<String>) -> Self {
        Self::No {
            why: why.into(),
            denied: false,
        }
    }

    /// Returns true if it worked.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Converts the error of a failed call.
    pub fn from_error(error: &io::Error) -> Self {
        // The text without Rust's suffix "(os error 1)".
        let text = error.to_string();
        let why = match error.raw_os_error() {
            // A kernel-internal number, which the C library does not know.
            Some(sys::bpf::ENOTSUPP) => "not supported".to_owned(),
            _ => text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_lowercase(),
        };
        Self::No {
            why,
            denied: error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

impl<T> From<io::Result<T>> for Answer {
    fn from(done: io::Result<T>) -> Self {
        match done {
            Ok(_) => Self::YES,
            Err(error) => Self::from_error(&error),
        }
    }
}

impl From<Result<Self, LoadError>> for Answer {
    /// Converts a load. If the verifier was reached, its log is the reason.
    fn from(done: Result<Self, LoadError>) -> Self {
        let error = match done {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        let mut lines = error.log.lines().map(str::trim);
        let said = lines.rfind(|line| !line.is_empty() && !line.starts_with("processed "));
        match (Self::from_error(&error.source), said) {
            (Self::No { why, denied }, Some(said)) => Self::No {
                why: format!("{why}: {said}"),
                denied,
            },
            (answer, _) => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_number_has_words() {
        let why = |number| Answer::from_error(&io::Error::from_raw_os_error(number));
        assert_eq!(why(sys::bpf::ENOTSUPP), Answer::no("not supported"));
        assert_eq!(why(22), Answer::no("invalid argument"));
        assert!(matches!(why(1), Answer::No { denied: true, .. }));
    }
}
