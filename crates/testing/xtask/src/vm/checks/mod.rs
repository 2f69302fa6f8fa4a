//! Checks that run on each kernel, and their expected results.

mod cpus;
mod datapath;
mod doctor;
mod probes;
mod record;
mod tests;

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use demo_target::Truth;
use xtask::{GuestAnswer, GuestCommand};

use super::build::TestProgram;
use super::hardware::Architecture;

pub(super) use doctor::FEATURES;

/// File to which the demo target writes the truth.
const TRUTH: &str = "truth.json";
/// Exit status for an operation that is not permitted, or not supported here.
const NOT_SUPPORTED: i32 = 3;

/// Known facts of the kernel that a check ran on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// Release of the kernel.
    pub(super) release: (u32, u32),
    /// Architecture of a Debian kernel; `None` for this machine's own.
    pub(super) debians: Option<Architecture>,
    /// Answers of `dptrace doctor`, by name.
    pub(super) doctor: BTreeMap<String, String>,
}

impl Known {
    fn has(&self, name: &str) -> bool {
        self.doctor.get(name).is_some_and(|answer| answer == "yes")
    }
}

/// Result of a check that passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It works as it should.
    Works,
    /// The kernel lacks something, and dptrace reports that in these words.
    Refused(String),
}

/// Requirement of a check. If it is not met, dptrace must report that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Needs {
    /// Feature that `dptrace doctor` knows under the first name; a refusal must have the second
    /// words.
    Feature(&'static str, &'static str),
    /// Release of Linux; a refusal must name it.
    Release(u32, u32),
    /// Guest: not this machine, which the check would disturb. `datapath` refuses it.
    Guest,
}

impl Needs {
    fn are_met(self, known: &Known) -> bool {
        match self {
            Self::Feature(name, _) => known.has(name),
            Self::Release(major, minor) => known.release >= (major, minor),
            Self::Guest => known.debians.is_some(),
        }
    }

    /// Returns the words that a refusal must have.
    fn words(self) -> String {
        match self {
            Self::Feature(_, words) => words.to_owned(),
            Self::Release(major, minor) => format!("Linux {major}.{minor}"),
            Self::Guest => "guests only".to_owned(),
        }
    }
}

/// Judge of an answer on a kernel that meets all needs.
type Judge = Box<dyn Fn(&Known, &GuestAnswer) -> anyhow::Result<()> + Send + Sync>;

/// Command to run, with its expected result.
pub(super) struct Check {
    /// Headline of its group.
    pub(super) group: &'static str,
    /// Name, for people.
    pub(super) name: String,
    /// Command to run.
    pub(super) command: GuestCommand,
    needs: &'static [Needs],
    works: Judge,
}

impl Check {
    fn new(
        group: &'static str,
        name: &str,
        command: GuestCommand,
        needs: &'static [Needs],
        works: impl Fn(&GuestAnswer) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            command,
            needs,
            works: Box::new(move |_, answer| works(answer)),
        }
    }

    /// Makes a check that may expect more of a newer kernel.
    fn by_release(
        group: &'static str,
        name: &str,
        command: GuestCommand,
        needs: &'static [Needs],
        works: impl Fn(&Known, &GuestAnswer) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            command,
            needs,
            works: Box::new(works),
        }
    }

    /// Makes a check of a command that must work on every kernel.
    fn command(
        name: &str,
        command: GuestCommand,
        works: fn(&GuestAnswer) -> anyhow::Result<()>,
    ) -> Self {
        Self::new("Commands", name, command, &[], works)
    }

    /// Judges the answer.
    pub(super) fn judge(&self, known: &Known, answer: &GuestAnswer) -> anyhow::Result<Verdict> {
        if self.needs.is_empty() {
            return (self.works)(known, answer).map(|()| Verdict::Works);
        }
        let refusal = refusal(answer);
        let Some(unmet) = self.needs.iter().find(|needs| !needs.are_met(known)) else {
            ensure!(
                refusal.is_none(),
                "refused: {}",
                refusal.unwrap_or_default()
            );
            return (self.works)(known, answer).map(|()| Verdict::Works);
        };
        let words = unmet.words();
        let said = refusal.with_context(|| format!("not refused, though it needs {words}"))?;
        ensure!(
            said.contains(&words),
            "the refusal does not name {words}: {said}"
        );
        Ok(Verdict::Refused(said))
    }
}

/// Returns the message of dptrace, or of one of its tests, about a missing feature.
fn refusal(answer: &GuestAnswer) -> Option<String> {
    let refused = answer
        .stdout
        .lines()
        .find_map(|line| line.split_once("REFUSED: "));
    if let Some((_, said)) = refused {
        return Some(said.trim_start_matches("error: ").to_owned());
    }
    let is_refused = answer.status == Some(NOT_SUPPORTED);
    let said = is_refused.then(|| {
        answer
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("error: "))
    });
    said.flatten().map(str::to_owned)
}

/// Returns all checks. The first is doctor's, against which the others are compared. `starve` adds
/// those that starve a processor.
pub(super) fn all(tests: &[TestProgram], starve: bool) -> Vec<Check> {
    let mut all = doctor::all();
    all.extend(record::all());
    all.extend(probes::all());
    all.extend(cpus::all(starve));
    all.extend(tests.iter().flat_map(tests::checks));
    // It loads a module, which changes the view of other checks.
    all.extend(datapath::all());
    all
}

/// Returns the known facts of the kernel: doctor's report, from the answer to the first check,
/// compared with the known features of Debian's kernels.
pub(super) fn known(
    release: (u32, u32),
    debians: Option<Architecture>,
    answers: &[GuestAnswer],
) -> anyhow::Result<Known> {
    let doctor = doctor::answers(answers.first().context("no answer at all")?)?;
    let known = Known {
        release,
        debians,
        doctor,
    };
    if let Some(architecture) = debians {
        doctor::is_right(&known, architecture)?;
    }
    Ok(known)
}

fn truth_of(answer: &GuestAnswer) -> anyhow::Result<Truth> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let truth = answer
        .file
        .as_deref()
        .context("the target wrote no truth")?;
    serde_json::from_str(truth).context("reading the truth")
}

#[cfg(test)]
mod self_test {
    use super::*;

    fn check(needs: &'static [Needs]) -> Check {
        let works = |answer: &GuestAnswer| {
            ensure!(answer.status == Some(0), "it did not");
            Ok(())
        };
        Check::new("group", "name", GuestCommand::new(&["x"]), needs, works)
    }

    fn known(kprobes: &str) -> Known {
        let doctor = [("kprobes".to_owned(), kprobes.to_owned())].into();
        Known {
            release: (5, 10),
            debians: Some(Architecture::X86_64),
            doctor,
        }
    }

    fn ended(status: i32, stderr: &str) -> GuestAnswer {
        GuestAnswer {
            status: Some(status),
            stderr: stderr.to_owned(),
            ..GuestAnswer::default()
        }
    }

    #[test]
    fn present_features_work_and_missing_ones_are_refused_by_name() {
        let kprobes = check(&[Needs::Feature("kprobes", "CONFIG_KPROBES")]);
        let refused = ended(3, "error: no CONFIG_KPROBES here");
        assert_eq!(
            kprobes.judge(&known("yes"), &ended(0, "")).unwrap(),
            Verdict::Works
        );
        assert_eq!(
            kprobes.judge(&known("no"), &refused).unwrap(),
            Verdict::Refused("no CONFIG_KPROBES here".into())
        );
        // Refused though the feature is there; broken; no refusal though it is missing; refused for
        // another reason.
        assert!(kprobes.judge(&known("yes"), &refused).is_err());
        assert!(kprobes.judge(&known("yes"), &ended(1, "error: x")).is_err());
        assert!(kprobes.judge(&known("no"), &ended(0, "")).is_err());
        assert!(
            kprobes
                .judge(&known("no"), &ended(3, "error: no such thing"))
                .is_err()
        );
        assert!(
            kprobes
                .judge(&known("no"), &ended(1, "error: CONFIG_KPROBES"))
                .is_err()
        );
    }

    #[test]
    fn a_release_that_is_too_old_must_be_given_the_right_one() {
        let newer = check(&[Needs::Release(5, 12)]);
        assert!(
            newer
                .judge(&known("yes"), &ended(3, "error: Linux 5.12 has"))
                .is_ok()
        );
        assert!(
            newer
                .judge(&known("yes"), &ended(3, "error: Linux 5.13 has"))
                .is_err()
        );
        assert!(
            check(&[Needs::Release(5, 10)])
                .judge(&known("yes"), &ended(3, "error: Linux 5.10 has"))
                .is_err()
        );
        // A test reports it in a different form.
        let refused = GuestAnswer {
            stdout: "test x ... REFUSED: error: Linux 5.12 has\n".into(),
            ..ended(0, "")
        };
        assert!(newer.judge(&known("yes"), &refused).is_ok());
    }
}
