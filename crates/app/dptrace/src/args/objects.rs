//! `-b`, `--no-recording` and `--objects`: the files that name the objects of a trace.

use std::path::PathBuf;

use clap::Args;
use live_objects::ObjectSources;
use trace_source::Place;

/// Files that name the objects that records point to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// A recording of the application's probes
    ///
    /// Made with dptrace record or bpftrace (see docs/objects.md). Pointers are printed as the
    /// objects that they pointed to at that time. Default: for a capture, its own recording; for a
    /// trace x.trace or NAME, the file x.recording or NAME.recording next to it, if dptrace record
    /// made it from the same process at that time.
    #[arg(
        short = 'b',
        long = "recording",
        visible_alias = "bpftrace",
        value_name = "FILE"
    )]
    recordings: Vec<PathBuf>,

    /// Use no recording, even if the capture has one or one lies next to the trace
    #[arg(long, conflicts_with = "recordings")]
    no_recording: bool,

    /// A file of additional object specs
    ///
    /// A spec with the name of a built-in one (see dptrace objects) replaces it.
    #[arg(long, value_name = "FILE.toml")]
    objects: Vec<PathBuf>,

    /// The same files for a certain trace.
    #[arg(skip)]
    at_place: Option<ObjectSources>,
}

impl ObjectArgs {
    /// Returns a copy for a trace at that place.
    pub(crate) fn for_place(&self, place: &Place) -> Self {
        Self {
            at_place: Some(self.sources().for_place(place)),
            ..self.clone()
        }
    }

    /// Returns the named files.
    pub(crate) fn sources(&self) -> ObjectSources {
        if let Some(sources) = &self.at_place {
            return sources.clone();
        }
        ObjectSources::new(
            self.recordings.clone(),
            self.no_recording,
            self.objects.clone(),
        )
    }
}
