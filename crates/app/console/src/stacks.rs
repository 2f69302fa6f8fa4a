//! Files of profiles, as options name them.

use std::io::Write as _;
use std::path::PathBuf;

use profiles::{Form, Profile, ProfileFile};
use text::printable::path as printable;
use whole_file::{Access, WholeFile};

use crate::messages::note;

/// File of a profile that has not come yet. It is there when it is whole.
#[derive(Debug)]
pub struct StackFile {
    file: WholeFile,
    path: PathBuf,
    form: Form,
}

impl StackFile {
    /// Creates the file, so that a wrong path is noticed before the work begins.
    ///
    /// # Errors
    ///
    /// Fails if the file can't be created.
    pub fn create(file: &ProfileFile) -> std::io::Result<Self> {
        Ok(Self {
            file: WholeFile::create(&file.path, Access::Umask)?,
            path: file.path.clone(),
            form: file.form,
        })
    }

    /// Writes the profile. Without a stack there is no file, but a note on what to do.
    ///
    /// # Errors
    ///
    /// Fails if the file can't be written.
    pub fn write(mut self, profile: &Profile, what_to_do: &str) -> std::io::Result<()> {
        if profile.is_empty() {
            let path = printable(&self.path);
            note(&format!(
                "no stack came, so {path} was not written: {what_to_do}"
            ));
            return Ok(());
        }
        self.file.write_all(&profile.bytes(self.form)?)?;
        self.file.commit()
    }
}
