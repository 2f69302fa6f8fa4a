//! `--objects SPEC,...`: the kinds of object a command is about, and the user's own spec files.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Args;
use errors::usage;
use live_objects::read_files;
use objects::{ObjectSpec, built_in};
use text::patterns;

/// Word for all built-in specs.
const ALL: &str = "all";

/// The kinds of object to record
///
/// Built-in names (see dptrace objects --list), all, or files of specs (.toml).
#[derive(Args, Clone, Debug)]
pub(crate) struct SpecArgs {
    /// The kinds of object to record: built-in names (see dptrace objects --list), all, or files of specs (.toml)
    #[arg(
        long,
        value_name = "SPEC",
        value_delimiter = ',',
        default_value = "qpair"
    )]
    objects: Vec<OsString>,
}

impl SpecArgs {
    /// Returns the files of specs, each with its description for messages.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = self.objects.iter().filter(|word| is_file(word));
        files.map(|word| ("the file of object specs", Path::new(word)))
    }

    /// Returns the requested specs, each once; a spec from a file replaces the built-in one of the
    /// same name.
    pub(crate) fn resolve(&self) -> anyhow::Result<Vec<ObjectSpec>> {
        let known = built_in()?;
        let files = self
            .objects
            .iter()
            .filter(|word| is_file(word))
            .map(AsRef::as_ref);
        let own = read_files(files)?;
        let mut specs: Vec<ObjectSpec> = Vec::new();
        for word in self.objects.iter().filter(|word| !is_file(word)) {
            let of_that_name = |spec: &&ObjectSpec| word == ALL || *word == *spec.name;
            if !known.iter().any(|spec| of_that_name(&spec)) {
                return Err(unknown(&word.to_string_lossy(), &known));
            }
            for spec in known.iter().filter(of_that_name) {
                if !own.iter().chain(&specs).any(|s| s.name == spec.name) {
                    specs.push(spec.clone());
                }
            }
        }
        specs.extend(own);
        Ok(specs)
    }
}

/// Returns whether the word is a file path rather than a name.
fn is_file(word: &OsStr) -> bool {
    let path = Path::new(word);
    path.extension()
        .is_some_and(|ext| ext.eq_ignore_ascii_case("toml"))
        || path.components().count() > 1
}

fn unknown(word: &str, known: &[ObjectSpec]) -> anyhow::Error {
    let names: Vec<_> = known
        .iter()
        .map(|spec| spec.name.as_str())
        .chain([ALL])
        .collect();
    let hint = patterns::hint(word, names.iter().copied());
    usage(format!(
        "there is no object spec {word:?}; give one of {}, or a file (.toml){hint}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn resolve(words: &[&str]) -> anyhow::Result<Vec<String>> {
        let specs = SpecArgs {
            objects: words.iter().map(OsString::from).collect(),
        }
        .resolve()?;
        Ok(specs.into_iter().map(|spec| spec.name).collect())
    }

    #[test]
    fn names_all_and_files() {
        let all = resolve(&[ALL]).unwrap();
        assert_eq!(all.len(), objects::BUILT_IN.len());
        assert_eq!(
            resolve(&["thread", "qpair", "thread"]).unwrap(),
            ["thread", "qpair"]
        );
        assert_eq!(resolve(&["qpair", ALL]).unwrap(), all, "each once");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("own.toml");
        let probe = "[[object.probe]]\nname = \"p\"\nrole = \"begin\"\nargs = [\"tsc\", \"k\"]\n";
        let spec = |name: &str| format!("[[object]]\nname = \"{name}\"\nkey = \"k\"\n{probe}");
        fs::write(&file, spec("qpair") + &spec("mine")).unwrap();
        let file = file.to_str().unwrap();
        assert_eq!(
            resolve(&[file, "thread", "qpair"]).unwrap(),
            ["thread", "qpair", "mine"]
        );
        assert!(
            resolve(&[file, file])
                .unwrap_err()
                .to_string()
                .contains("two objects have the name \"qpair\"")
        );
    }

    #[test]
    fn a_typing_error_is_reported_with_the_nearest_name() {
        let error = |word| resolve(&[word]).unwrap_err().to_string();
        assert!(
            error("qpiar").ends_with("; did you mean qpair?"),
            "{}",
            error("qpiar")
        );
        assert!(
            error("zz").contains("give one of qpair, ctrlr,")
                && error("").contains(", all, or a file (.toml)")
        );
        assert!(error("no/such/file").starts_with("reading no/such/file"));
        assert!(error("own.toml").starts_with("reading own.toml"));
    }
}
