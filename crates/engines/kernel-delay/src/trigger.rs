//! Triggers that start and stop a window: the forms of Open vSwitch's script, in both spellings of
//! its documentation.

use thiserror::Error;

/// Trigger, as typed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Trigger {
    /// USDT probe of the process.
    Usdt {
        /// Provider of the probe.
        provider: String,
        /// Name of the probe.
        probe: String,
    },
    /// Tracepoint of the kernel.
    Tracepoint {
        /// Subsystem of the kernel that it belongs to.
        system: String,
        /// Name of the tracepoint.
        event: String,
    },
    /// Entry or return of a kernel function.
    Kernel {
        /// Name of the function.
        function: String,
        /// True for the return.
        on_return: bool,
    },
    /// Entry or return of a function of the process.
    User {
        /// Name of the function.
        function: String,
        /// True for the return.
        on_return: bool,
    },
}

/// Reason that a text is not a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TriggerError {
    /// The text has no known form.
    #[error("{text:?} is not a trigger; the forms are {}", FORMS.join(", "))]
    Form {
        /// Text as typed.
        text: String,
    },
    /// It names a file, as probes of scripts do.
    #[error("the trigger {text:?} names a file, but -p already selects the program: use {form}")]
    File {
        /// Text as typed.
        text: String,
        /// Expected form.
        form: &'static str,
    },
    /// A part is missing.
    #[error("the trigger {text:?} is incomplete: use {form}")]
    Part {
        /// Text as typed.
        text: String,
        /// Expected form.
        form: &'static str,
    },
}

/// Forms, each with all its spellings.
pub const FORMS: [&str; 6] = [
    "U:PROVIDER:PROBE (usdt:)",
    "t:SYSTEM:EVENT (trace:)",
    "k:FUNCTION (kprobe:)",
    "kr:FUNCTION (kretprobe:)",
    "u:FUNCTION (up:, uprobe:)",
    "ur:FUNCTION (upr:, uretprobe:)",
];

/// Returns an error if a trigger names a file, as probes of a process do in scripts.
fn refuse_file(text: &str, kind: &str, rest: &str) -> Result<(), TriggerError> {
    let form = match kind {
        "u" | "up" | "uprobe" => 4,
        "ur" | "upr" | "uretprobe" => 5,
        "U" | "usdt" => 0,
        _ => return Ok(()),
    };
    if !rest.starts_with('/') {
        return Ok(());
    }
    Err(TriggerError::File {
        text: text.to_owned(),
        form: FORMS[form],
    })
}

impl std::str::FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let unknown = || TriggerError::Form {
            text: text.to_owned(),
        };
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        let lacks = |form| TriggerError::Part {
            text: text.to_owned(),
            form: FORMS[form],
        };
        let two = |form: usize| {
            let parts = rest
                .split_once(':')
                .filter(|(first, second)| !first.is_empty() && !second.is_empty());
            parts
                .map(|(first, second)| (first.to_owned(), second.to_owned()))
                .ok_or_else(|| lacks(form))
        };
        let one = |form: usize| {
            if rest.is_empty() {
                Err(lacks(form))
            } else {
                Ok(rest.to_owned())
            }
        };
        refuse_file(text, kind, rest)?;
        Ok(match kind {
            // Open vSwitch's script has `u:PROVIDER:PROBE`; `::` is in names of C++ functions.
            "u" if !rest.contains(':') || rest.contains("::") => Self::User {
                function: one(4)?,
                on_return: false,
            },
            "u" | "U" | "usdt" => two(0).map(|(provider, probe)| Self::Usdt { provider, probe })?,
            "t" | "trace" => two(1).map(|(system, event)| Self::Tracepoint { system, event })?,
            "k" | "kprobe" => Self::Kernel {
                function: one(2)?,
                on_return: false,
            },
            "kr" | "kretprobe" => Self::Kernel {
                function: one(3)?,
                on_return: true,
            },
            "up" | "uprobe" => Self::User {
                function: one(4)?,
                on_return: false,
            },
            "ur" | "upr" | "uretprobe" => Self::User {
                function: one(5)?,
                on_return: true,
            },
            _ => return Err(unknown()),
        })
    }
}

impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usdt { provider, probe } => write!(f, "U:{provider}:{probe}"),
            Self::Tracepoint { system, event } => write!(f, "t:{system}:{event}"),
            Self::Kernel {
                function,
                on_return: false,
            } => write!(f, "k:{function}"),
            Self::Kernel {
                function,
                on_return: true,
            } => write!(f, "kr:{function}"),
            Self::User {
                function,
                on_return: false,
            } => write!(f, "u:{function}"),
            Self::User {
                function,
                on_return: true,
            } => write!(f, "ur:{function}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_read_and_others_refused() {
        let function = |on_return| Trigger::User {
            function: "f".into(),
            on_return,
        };
        for text in ["ur:f", "upr:f", "uretprobe:f"] {
            assert_eq!(text.parse(), Ok(function(true)));
        }
        // As in scripts of `run`.
        for text in ["u:f", "up:f", "uprobe:f"] {
            assert_eq!(text.parse(), Ok(function(false)));
        }
        let method: Result<Trigger, _> = "u:a::f".parse();
        assert!(matches!(method, Ok(Trigger::User { function, .. }) if function == "a::f"));
        assert_eq!(
            "kprobe:f".parse(),
            Ok(Trigger::Kernel {
                function: "f".into(),
                on_return: false
            })
        );
        let usdt = Trigger::Usdt {
            provider: "p".into(),
            probe: "q".into(),
        };
        assert_eq!(
            ["u:p:q", "U:p:q", "usdt:p:q"].map(str::parse),
            [Ok(usdt.clone()), Ok(usdt.clone()), Ok(usdt)]
        );
        let event = Trigger::Tracepoint {
            system: "irq".into(),
            event: "x".into(),
        };
        assert_eq!("trace:irq:x".parse(), Ok(event));
        assert!(matches!(
            "U:p".parse::<Trigger>(),
            Err(TriggerError::Part { .. })
        ));
        assert!(matches!(
            "x:y".parse::<Trigger>(),
            Err(TriggerError::Form { .. })
        ));
        assert!(matches!(
            "f".parse::<Trigger>(),
            Err(TriggerError::Form { .. })
        ));
    }
}
