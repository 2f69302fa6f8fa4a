//! Requests that wait by design, so that their time says nothing of how fast requests are served: those of admin queues, on
//! which requests for asynchronous events wait until there is an event or the connection ends.

use records::{Context, Field};
use spdk_trace::{Record, Tpoint};

/// Why a request is apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Apart {
    /// It is of an admin queue, number 0 of its controller.
    Admin,
    /// Nobody answered it, and its queue is not known.
    Unanswered,
}

impl Apart {
    /// In JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Unanswered => "unanswered",
        }
    }

    /// Above the rows of such requests.
    pub(crate) fn headline(self) -> &'static str {
        match self {
            Self::Admin => "admin queues, on which requests for async events wait by design:",
            Self::Unanswered => "without an answer: async events of admin queues, or given up:",
        }
    }
}

/// How far a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// Somewhere else.
    #[default]
    Other,
    Executing,
    /// It is completed, and was not executed. A request of an NVMe-oF target whose queue pair goes away while the block device,
    /// or nobody, works on it goes so (`nvmf_tcp_drain_state_queue`, lib/nvmf/tcp.c).
    Unanswered,
}

/// What a tracepoint says of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Executing,
    Executed,
    Completed,
}

/// How requests that wait by design are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// By tracepoint id.
    marks: Vec<Option<Mark>>,
    /// The number of a request's queue, where that is asked for.
    number: Option<Field>,
    /// A trace that does not record answers does not show which requests had none.
    has_answers: bool,
}

impl Queues {
    /// For a trace with these tracepoints.
    pub(crate) fn new(tpoints: &[Tpoint], number: Option<Field>) -> Self {
        let mut marks = Vec::new();
        for tpoint in tpoints {
            let is = |end: &str| tpoint.name.ends_with(end);
            let mark = if is("_REQ_EXECUTING") {
                Mark::Executing
            } else if is("_REQ_EXECUTED") {
                Mark::Executed
            } else if is("_REQ_COMPLETED") {
                Mark::Completed
            } else {
                continue;
            };
            let id = usize::from(tpoint.id);
            marks.resize(marks.len().max(id + 1), None);
            marks[id] = Some(mark);
        }
        Self { marks, number, has_answers: false }
    }

    /// Whether it is asked which queue a request is of.
    pub(crate) fn is_asked(&self) -> bool {
        self.number.is_some()
    }

    /// Whether the record says something of its request.
    pub(crate) fn is_step(&self, record: &Record<'_>) -> bool {
        self.mark(record).is_some()
    }

    fn mark(&self, record: &Record<'_>) -> Option<Mark> {
        self.marks.get(usize::from(record.tpoint.id)).copied().flatten()
    }

    /// Makes the step that the record says.
    pub(crate) fn pass(&mut self, step: &mut Step, record: &Record<'_>) {
        match self.mark(record) {
            None => {}
            Some(Mark::Executing) => *step = Step::Executing,
            Some(Mark::Executed) => {
                *step = Step::Other;
                self.has_answers = true;
            }
            Some(Mark::Completed) => {
                let is_unanswered = *step == Step::Executing && self.has_answers;
                *step = if is_unanswered { Step::Unanswered } else { Step::Other };
            }
        }
    }

    /// Whether the record's queue is an admin queue, if it says so: these have the number 0 (NVMe base specification, 1.5).
    pub(crate) fn is_admin(&self, record: &Record<'_>, context: &Context<'_>) -> Option<bool> {
        Some(self.number.as_ref()?.value(record, context)? == "0")
    }
}
