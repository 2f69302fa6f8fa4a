//! The probes that a recording of some specs needs, without duplicates.

use crate::spec::{ObjectSpec, ProbeArg, SpecError};

/// Provider of SPDK's probes. SPDK's script leaves it out, and so do we.
const SPDK: &str = "spdk";

/// A probe to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest<'a> {
    /// Provider of the probe.
    pub provider: &'a str,
    /// Name of the probe.
    pub name: &'a str,
    /// Arguments, up to the last one known to any of the specs.
    pub args: &'a [ProbeArg],
    /// True if it has a time of its own: see [`crate::ProbeSpec::ticks`].
    pub ticks: bool,
}

impl<'a> ProbeRequest<'a> {
    /// Returns the probes of these specs, in the order of the specs and of their probes.
    ///
    /// A recording names a hit only by its probe, and an argument only by its name, so specs that
    /// share a probe must agree about it.
    pub fn from_specs(specs: &'a [ObjectSpec]) -> Result<Vec<Self>, SpecError> {
        let mut wanted: Vec<Self> = Vec::new();
        for spec in specs {
            for probe in &spec.probes {
                let new = Self {
                    provider: &spec.provider,
                    name: &probe.name,
                    args: &probe.args,
                    ticks: probe.ticks,
                };
                match wanted.iter_mut().find(|known| known.name == new.name) {
                    Some(known) => known.merge(&new).map_err(|what| {
                        let object = spec.name.clone();
                        SpecError::Contradiction {
                            object,
                            what: format!("probe {:?}: {what}", probe.name),
                        }
                    })?,
                    None => wanted.push(new),
                }
            }
        }
        Ok(wanted)
    }

    fn merge(&mut self, other: &Self) -> Result<(), String> {
        if self.provider != other.provider {
            return Err(format!(
                "another spec gives it the provider {:?}",
                self.provider
            ));
        }
        if let Some((mine, _)) = self
            .args
            .iter()
            .zip(other.args)
            .find(|(mine, other)| mine != other)
        {
            let kind = if mine.string { ": string" } else { "" };
            return Err(format!(
                "another spec has the argument \"{}{kind}\" in this place",
                mine.name
            ));
        }
        if other.args.len() > self.args.len() {
            self.args = other.args;
        }
        self.ticks &= other.ticks;
        Ok(())
    }

    /// Formats the probe with its action, which prints a line of the recording, in bpftrace's
    /// language. Its form is that of SPDK's own `scripts/bpf/trace.py -g`.
    pub fn bpftrace_line(&self) -> String {
        let Self {
            provider,
            name,
            args,
            ..
        } = *self;
        let place = if provider == SPDK {
            name.to_owned()
        } else {
            format!("{provider}:{name}")
        };
        let form = |arg: &ProbeArg| {
            if arg.string {
                format!("{}='%s'", arg.name)
            } else {
                format!("{}=0x%lx", arg.name)
            }
        };
        let value = |(at, arg): (usize, &ProbeArg)| {
            if arg.string {
                format!("str(arg{at})")
            } else {
                format!("arg{at}")
            }
        };
        let forms: Vec<_> = args.iter().map(form).collect();
        let values: Vec<_> = args.iter().enumerate().map(value).collect();
        format!(
            "usdt:__EXE__:{place} {{printf(\"{name}: {}\\n\", {});}}",
            forms.join(", "),
            values.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{built_in, parse_specs};

    #[test]
    fn a_probe_of_two_specs_is_recorded_once() {
        let specs = built_in().unwrap();
        let wanted = ProbeRequest::from_specs(&specs).unwrap();
        let mut names: Vec<_> = wanted.iter().map(|w| w.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(names.contains(&"nvmf_create_poll_group"));
    }

    #[test]
    fn specs_must_agree_about_a_probe() {
        let spec = |name: &str, head: &str, args: &str| {
            format!(
                "[[object]]\nname = \"{name}\"\nkey = \"p\"\n{head}\n[[object.probe]]\nname = \"b\"\nrole = \"begin\"\n\
                 args = [\"tsc\", \"p\"{args}]\n"
            )
        };
        let both = |head: &str, args: &str| {
            parse_specs(&(spec("one", "", ", \"q\"") + &spec("two", head, args))).unwrap()
        };
        let longer = both("", ", \"q\", \"r\"");
        assert_eq!(ProbeRequest::from_specs(&longer).unwrap()[0].args.len(), 4);
        let wrong = |head, args| {
            ProbeRequest::from_specs(&both(head, args))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            wrong("", ", \"q: string\""),
            "object \"two\": probe \"b\": another spec has the argument \"q\" in this place"
        );
        assert!(wrong("provider = \"x\"", "").contains("gives it the provider \"spdk\""));
    }
}
