//! Forms of a profile's file, by the ending of its name.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Form of the file of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Lines of `outer;inner weight`, the input of flame graph tools.
    Folded,
    /// Compressed protocol buffer of pprof.
    Pprof,
    /// JSON of speedscope.
    Speedscope,
    /// Page with a flame graph.
    Flame,
}

/// Endings of file names, with their forms.
const ENDINGS: [(&str, Form); 4] = [
    (".folded", Form::Folded),
    (".pb.gz", Form::Pprof),
    (".speedscope.json", Form::Speedscope),
    (".html", Form::Flame),
];

impl Form {
    /// Returns the form for a file.
    ///
    /// # Errors
    ///
    /// Returns what to do if the name has an unknown ending.
    pub fn for_path(path: &Path) -> Result<Self, String> {
        let name = path.to_string_lossy();
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|(_, form)| *form).ok_or_else(|| {
            "the name of the file must end with .html (a flame graph), .pb.gz (pprof), \
             .speedscope.json or .folded"
                .to_owned()
        })
    }
}

/// File for a profile, as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Form of the file.
    pub form: Form,
}

impl FromStr for ProfileFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let form = Form::for_path(&path)?;
        Ok(Self { path, form })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        let form = |name| Form::for_path(Path::new(name));
        assert_eq!(form("a.pb.gz"), Ok(Form::Pprof));
        assert_eq!(form("dir/cpu.html"), Ok(Form::Flame));
        assert_eq!(form("x.speedscope.json"), Ok(Form::Speedscope));
        assert!(form("x.json").is_err_and(|error| error.contains(".pb.gz (pprof)")));
    }
}
