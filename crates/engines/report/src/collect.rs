//! The consumer of the second pass: collects the data of the page, in bounded memory.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use page::{Heat, TimeBounds};
use scene::{Consumer, Interval, KernelEvent, Request, Tid};
use timeline::first::{FirstPass, counts};
use timeline::pass::RequestLabels;
use timeline::second::{SecondPass, kernel_of_stage};
use timeline::source::Source;

use super::build::Axis;
use super::threads::Threads;

/// Limit on the connections with their own losses.
const MAX_CONNECTIONS: usize = 16_384;

/// Consumer that passes everything on to `dptrace timeline`'s, and keeps the data of charts.
pub(crate) struct Collector<'a> {
    source: &'a Source,
    pub(crate) second: SecondPass<'a>,
    pub(crate) heat: Heat,
    pub(crate) threads: Threads,
    axis: Axis,
    /// Time that the kernel took of each connection's requests, and their total length.
    lost: HashMap<Box<str>, (TimeBounds, u64), RandomState>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(first: &mut FirstPass<'a>, slowest: usize, axis: Axis) -> Self {
        let source = first.source;
        Self {
            source,
            second: SecondPass::new(first, slowest, 0),
            heat: Heat::new(axis.span()),
            threads: Threads::new(source, axis),
            axis,
            lost: HashMap::default(),
        }
    }

    /// Takes the kernel's share of each connection's requests; empty without events of the kernel.
    pub(crate) fn take_lost(&mut self) -> HashMap<String, (TimeBounds, u64)> {
        let lost = std::mem::take(&mut self.lost);
        lost.into_iter()
            .map(|(name, lost)| (name.into(), lost))
            .collect()
    }

    fn count_lost(&mut self, request: &Request<RequestLabels>) {
        let Some(owner) = &request.data.owner else {
            return;
        };
        if self.source.kernel.is_none()
            || self.lost.len() >= MAX_CONNECTIONS && !self.lost.contains_key(owner)
        {
            return;
        }
        let ((least, most), of) = self.lost.entry(owner.clone()).or_default();
        for stage in &request.stages {
            let (at_least, at_most) = kernel_of_stage(stage);
            (*least, *most) = (least.saturating_add(at_least), most.saturating_add(at_most));
        }
        *of = of.saturating_add(request.length());
    }
}

impl Consumer<RequestLabels> for Collector<'_> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        self.second.request(request);
        if request.related.is_some() || !counts(request, self.source) {
            return;
        }
        let whose = request.data.owner.as_deref();
        self.heat
            .add(self.axis.at(request.end()), request.length(), whose, || {
                request.name.to_string()
            });
        self.count_lost(request);
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.threads.interval(tid, interval);
    }

    fn event(&mut self, event: &KernelEvent) {
        self.threads.event(event);
    }
}
