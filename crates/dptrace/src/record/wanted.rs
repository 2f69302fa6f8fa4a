//! Which probes the object specs need.

use objects::{ObjectSpec, ProbeArg};

/// A probe to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) provider: String,
    pub(crate) name: String,
    /// What its arguments are called in the recording, in the probe's order.
    pub(crate) args: Vec<ProbeArg>,
}

impl Wanted {
    /// The probes of all specs. One that several specs name is wanted once for each way in which they call its arguments;
    /// of two ways that agree as far as the shorter goes, the longer one tells both.
    pub(crate) fn of(specs: &[ObjectSpec]) -> Vec<Self> {
        let mut wanted: Vec<Self> = Vec::new();
        for spec in specs {
            for probe in &spec.probes {
                let same = |known: &&mut Self| known.provider == spec.provider && known.name == probe.name;
                let extended = wanted.iter_mut().filter(same).find(|known| agree(&known.args, &probe.args));
                match extended {
                    Some(known) if known.args.len() < probe.args.len() => known.args.clone_from(&probe.args),
                    Some(_) => {}
                    None => wanted.push(Self {
                        provider: spec.provider.clone(),
                        name: probe.name.clone(),
                        args: probe.args.clone(),
                    }),
                }
            }
        }
        wanted
    }

    /// As it is typed and told.
    pub(crate) fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }
}

fn agree(a: &[ProbeArg], b: &[ProbeArg]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(second_args: &str) -> Vec<ObjectSpec> {
        let text = format!(
            r#"
            [[object]]
            name = "a"
            key = "k"
            [[object.probe]]
            name = "p"
            role = "begin"
            args = ["tsc", "k"]
            [[object]]
            name = "b"
            key = "k"
            [[object.probe]]
            name = "p"
            role = "begin"
            args = [{second_args}]
            "#
        );
        objects::parse_specs(&text).unwrap()
    }

    #[test]
    fn a_probe_of_two_specs_is_recorded_once_if_one_line_serves_both() {
        let one = Wanted::of(&specs(r#""tsc", "k", "more: string""#));
        assert_eq!(one.len(), 1);
        assert_eq!((one[0].args.len(), one[0].full_name().as_str()), (3, "spdk:p"));
        assert_eq!(Wanted::of(&specs(r#""tsc", "other", "k""#)).len(), 2);
    }
}
