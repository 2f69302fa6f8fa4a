//! The objects of a trace: built-in specs, the user's specs, and their recording.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use host::user_file;
use objects::{Annotator, ObjectSpec, built_in};
use spdk_trace::{Ticks, TpointTable};
use text::printable::path as printable;
use text::shell;
use trace_source::{Place, beside, captures};

use crate::messages::note;
use crate::specs::read_files;
use crate::terminal;

/// What names the objects that records point to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// A recording of the application's probes
    ///
    /// Made with dptrace record or bpftrace (see docs/objects.md). Pointers are printed as the objects that they pointed to
    /// at that time. Default: of a capture its own; of a trace x.trace or NAME the file x.recording or NAME.recording beside it, if
    /// dptrace record made it of the same process at that time.
    #[arg(short = 'b', long = "recording", visible_alias = "bpftrace", value_name = "FILE")]
    recordings: Vec<PathBuf>,

    /// Use no recording, also if a capture has one or one lies beside the trace
    #[arg(long, conflicts_with = "recordings")]
    no_recording: bool,

    /// The recording beside the trace, which may belong to it, and the trace.
    #[arg(skip)]
    beside: Option<Beside>,

    /// A file of additional object specs
    ///
    /// A spec with the name of a built-in one (see dptrace objects) replaces it.
    #[arg(long, value_name = "FILE.toml")]
    objects: Vec<PathBuf>,
}

/// A recording and the trace beside which it lies.
#[derive(Clone, Debug)]
struct Beside {
    recording: PathBuf,
    trace: PathBuf,
}

impl ObjectArgs {
    /// Returns the same for a trace at that place: a capture has a recording of its own, and one may lie beside a trace. These hold
    /// if no other one is named.
    pub(crate) fn of(&self, place: &Place) -> Self {
        let mut this = self.clone();
        if let Place::File(path) = place
            && self.recordings.is_empty()
            && !self.no_recording
        {
            this.recordings.extend(captures::objects(path));
            this.beside = beside::find(path).map(|recording| Beside { recording, trace: path.clone() });
        }
        this
    }

    /// The files named, and what each is.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let recordings = self.recordings.iter().map(|path| ("the recording", path.as_path()));
        let beside = self.beside.iter().map(|beside| ("the recording beside the trace", beside.recording.as_path()));
        recordings.chain(beside).chain(self.objects.iter().map(|path| ("the file of object specs", path.as_path())))
    }

    /// The recordings.
    pub(crate) fn recordings(&self) -> impl Iterator<Item = &Path> {
        self.recordings.iter().map(PathBuf::as_path)
    }

    /// The options that name these files, for a command that is printed to be pasted.
    pub(crate) fn command_line(&self) -> String {
        let recordings = self.recordings.iter().map(|path| ("-b", path));
        let options = recordings.chain(self.objects.iter().map(|path| ("--objects", path)));
        let none = if self.no_recording { " --no-recording" } else { "" };
        let words = options.flat_map(|(option, path)| [" ".into(), option.into(), " ".into(), shell::word(path)]);
        std::iter::once(none.into()).chain(words).collect()
    }

    /// The user's specs, and the built-in ones that they don't replace.
    pub(crate) fn specs(&self) -> anyhow::Result<Vec<ObjectSpec>> {
        let mut specs = read_files(self.objects.iter().map(PathBuf::as_path))?;
        for spec in built_in()? {
            if !specs.iter().any(|s| s.name == spec.name) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }

    /// Makes the annotator for a trace with these tracepoints, if there is a recording, or lines about what is alive now. `span` gives
    /// the times of its first and last record, if a recording beside it needs them.
    pub(crate) fn annotator(
        &self,
        specs: Vec<ObjectSpec>,
        tpoints: &TpointTable,
        alive: &str,
        span: impl FnOnce() -> Option<(Ticks, Ticks)>,
    ) -> anyhow::Result<Option<Annotator>> {
        let beside = self.beside.as_ref().map(|beside| beside.text(span)).transpose()?.flatten();
        if self.recordings.is_empty() && beside.is_none() {
            let annotator = || live_objects::annotate_quietly(alive, specs, tpoints);
            return Ok((!alive.is_empty()).then(annotator));
        }
        let mut text = self.text()?;
        text.extend([beside.as_deref().unwrap_or_default(), "\n", alive]);
        let beside = self.beside.iter().map(|beside| &beside.recording);
        let names: Vec<_> = self.recordings.iter().chain(beside).map(printable).collect();
        Ok(Some(live_objects::annotate(&text, &names.join(", "), specs, tpoints, &terminal::observer())))
    }

    /// What is in the recordings, one behind the other.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
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

impl Beside {
    /// Returns its text if it belongs to the trace; a note says whether it does.
    fn text(&self, span: impl FnOnce() -> Option<(Ticks, Ticks)>) -> anyhow::Result<Option<String>> {
        let (text, misfit) = if beside::is_trusted(&self.recording, &self.trace) {
            let text = text_of(user_file::read_member(&self.recording, user_file::RECORDING), &self.recording)?;
            let misfit = beside::misfit(&text, &self.trace, span());
            (text, misfit)
        } else {
            (String::new(), Some("it is another user's".to_owned()))
        };
        let recording = printable(&self.recording);
        if let Some(why) = misfit {
            note(&format!("{recording} lies beside the trace and is not used: {why}; -b uses it nevertheless"));
            return Ok(None);
        }
        note(&format!(
            "objects have names by {recording}, which lies beside the trace (-b names another one, --no-recording none)"
        ));
        Ok(Some(text))
    }
}

/// Returns the text of a recording that was read. Most often all of it is UTF-8: then nothing is copied.
fn text_of(read: io::Result<Vec<u8>>, path: &Path) -> anyhow::Result<String> {
    let bytes = read.with_context(|| format!("reading the recording {}", printable(path)))?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}
