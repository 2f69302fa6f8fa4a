//! Files that name the objects of a trace: recordings, specs, and the recording beside a trace.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use errors::usage;
use host::user_file;
use objects::{Annotator, ObjectSpec, built_in, parse_specs};
use observer::Observer;
use spdk_trace::{Ticks, TpointTable};
use text::printable::path as printable;
use text::shell;
use trace_source::{Place, beside, captures};

/// Files that name the objects that records point to.
#[derive(Clone, Debug, Default)]
pub struct ObjectSources {
    /// Recordings of the application's probes.
    pub recordings: Vec<PathBuf>,
    /// True if no recording is used, even if a capture has one or one lies beside the trace.
    pub no_recording: bool,
    /// Files of additional object specs.
    pub specs: Vec<PathBuf>,
    /// Recording beside the trace, with that trace; it may or may not belong to it.
    beside: Option<AdjacentRecording>,
}

/// Recording, and the trace beside which it lies.
#[derive(Clone, Debug)]
struct AdjacentRecording {
    recording: PathBuf,
    trace: PathBuf,
}

impl ObjectSources {
    /// Creates the sources that the user named.
    pub fn new(recordings: Vec<PathBuf>, no_recording: bool, specs: Vec<PathBuf>) -> Self {
        Self {
            recordings,
            no_recording,
            specs,
            beside: None,
        }
    }

    /// Returns the sources for a trace at this place: a capture has its own recording, and one may
    /// lie beside a trace. Both are used only if no other one is named.
    #[must_use]
    pub fn for_place(&self, place: &Place) -> Self {
        let mut this = self.clone();
        if let Place::File(path) = place
            && self.recordings.is_empty()
            && !self.no_recording
        {
            this.recordings.extend(captures::objects(path));
            this.beside = beside::find(path).map(|recording| AdjacentRecording {
                recording,
                trace: path.clone(),
            });
        }
        this
    }

    /// Returns the files named, with a description of each.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let recordings = self
            .recordings
            .iter()
            .map(|path| ("the recording", path.as_path()));
        let beside = self
            .beside
            .iter()
            .map(|beside| ("the recording beside the trace", beside.recording.as_path()));
        recordings.chain(beside).chain(
            self.specs
                .iter()
                .map(|path| ("the file of object specs", path.as_path())),
        )
    }

    /// Returns the recordings.
    pub fn recordings(&self) -> impl Iterator<Item = &Path> {
        self.recordings.iter().map(PathBuf::as_path)
    }

    /// Returns the options that name these files, for a printed command that can be pasted.
    pub fn command_line(&self) -> String {
        let recordings = self.recordings.iter().map(|path| ("-b", path));
        let options = recordings.chain(self.specs.iter().map(|path| ("--objects", path)));
        let none = if self.no_recording {
            " --no-recording"
        } else {
            ""
        };
        let words = options
            .flat_map(|(option, path)| [" ".into(), option.into(), " ".into(), shell::word(path)]);
        std::iter::once(none.into()).chain(words).collect()
    }

    /// Returns the user's specs, and the built-in ones that they don't replace.
    pub fn specs(&self) -> anyhow::Result<Vec<ObjectSpec>> {
        let mut specs = read_files(self.specs.iter().map(PathBuf::as_path))?;
        for spec in built_in()? {
            if !specs.iter().any(|s| s.name == spec.name) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }

    /// Makes the annotator for a trace with these tracepoints, if there is a recording, or lines
    /// about objects alive now. `span` returns the times of its first and last record, if a
    /// recording beside it needs them.
    pub fn annotator(
        &self,
        specs: Vec<ObjectSpec>,
        tpoints: &TpointTable,
        alive: &str,
        span: impl FnOnce() -> Option<(Ticks, Ticks)>,
        observer: &Observer,
    ) -> anyhow::Result<Option<Annotator>> {
        let beside = self
            .beside
            .as_ref()
            .map(|beside| beside.text(span, observer))
            .transpose()?
            .flatten();
        if self.recordings.is_empty() && beside.is_none() {
            let annotator = || crate::annotate_quietly(alive, specs, tpoints);
            return Ok((!alive.is_empty()).then(annotator));
        }
        let mut text = self.text()?;
        text.extend([beside.as_deref().unwrap_or_default(), "\n", alive]);
        let beside = self.beside.iter().map(|beside| &beside.recording);
        let names: Vec<_> = self
            .recordings
            .iter()
            .chain(beside)
            .map(printable)
            .collect();
        Ok(Some(crate::annotate(
            &text,
            &names.join(", "),
            specs,
            tpoints,
            observer,
        )))
    }

    /// Reads the recordings, joined in their order.
    pub fn text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for path in &self.recordings {
            let more = text_of(user_file::read(path, user_file::RECORDING), path)?;
            if text.is_empty() {
                text = more;
            } else {
                text.push('\n');
                text.push_str(&more);
            }
        }
        Ok(text)
    }
}

impl AdjacentRecording {
    /// Returns its text if it belongs to the trace; reports which is the case.
    fn text(
        &self,
        span: impl FnOnce() -> Option<(Ticks, Ticks)>,
        observer: &Observer,
    ) -> anyhow::Result<Option<String>> {
        let (text, misfit) = if beside::is_trusted(&self.recording, &self.trace) {
            let text = text_of(
                user_file::read_member(&self.recording, user_file::RECORDING),
                &self.recording,
            )?;
            let misfit = beside::misfit(&text, &self.trace, span());
            (text, misfit)
        } else {
            (String::new(), Some("it is another user's".to_owned()))
        };
        let recording = printable(&self.recording);
        if let Some(why) = misfit {
            observer.note(&format!(
                "{recording} next to the trace is not used: {why}; -b uses it anyway"
            ));
            return Ok(None);
        }
        observer.note(&format!(
            "objects are named from {recording}, next to the trace (-b uses another one, \
             --no-recording none)"
        ));
        Ok(Some(text))
    }
}

/// Returns the text of a recording. Usually it is all UTF-8: then nothing is copied.
fn text_of(read: io::Result<Vec<u8>>, path: &Path) -> anyhow::Result<String> {
    let bytes = read.with_context(|| format!("reading the recording {}", printable(path)))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Reads the specs of a user's files. Returns an error if two have the same name.
pub fn read_files<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<Vec<ObjectSpec>> {
    let mut specs: Vec<ObjectSpec> = Vec::new();
    for path in paths {
        let text = user_file::read(path, user_file::SPECS);
        if text
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::FileTooLarge)
        {
            let limit = user_file::SPECS >> 20;
            return Err(usage(format!(
                "{}: expected object specs of at most {limit} MiB",
                printable(path)
            )));
        }
        let text = text.with_context(|| format!("reading {}", printable(path)))?;
        let text =
            String::from_utf8(text).map_err(|e| usage(format!("{}: {e}", printable(path))))?;
        let read = parse_specs(&text).map_err(|e| usage(format!("{}: {e}", printable(path))))?;
        for spec in read {
            if specs.iter().any(|s| s.name == spec.name) {
                return Err(usage(format!(
                    "{}: two objects have the name {:?}",
                    printable(path),
                    spec.name
                )));
            }
            specs.push(spec);
        }
    }
    Ok(specs)
}
