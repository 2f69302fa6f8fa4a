//! A running recording: a thread turns the events of sockets into the records of a trace in memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use bpf_program::event::{RING, UNSENT};
use bpf_program::wire::{WrongSize, read_event};
use bpf_session::{Delivery, EventClock, Features, POLL_INTERVAL, Reorder, RingReader, Session};
use host::Pid;
use sched_programs::{EndedProcesses, NamedMap, ProcessSet, SchedError, hooks};

use crate::SocketError;
use crate::connections::{self, Connections, Totals};
use crate::facts::SocketFacts;
use crate::layout::{Event, MAX_PORTS, PORTS};
use crate::listening::ListeningPorts;
use crate::programs;
use crate::trace::{RequestRecord, RequestTrace};

/// Size of the ring of events, in bytes.
const RING_BYTES: u32 = 8 << 20;

/// Requests of a process, seen at its sockets.
pub struct SocketRequests {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    complete: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<Totals, SocketError>>>,
}

impl SocketRequests {
    /// Attaches the programs to the sockets of a server's processes, and starts to write their
    /// requests to a trace.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not have the tracepoints (before Linux 6.3) or rejects the
    /// programs, or if there is no memory for the trace.
    pub fn start(processes: &ProcessSet) -> Result<Self, SocketError> {
        let facts = SocketFacts::read()?;
        let module = programs::module(facts, processes.known_by(), RING_BYTES)?;
        let features = Features::detect().map_err(SchedError::from)?;
        let features = features.for_process(Some(processes.first()));
        let mut session = Session::load(&module, features).map_err(SchedError::from)?;
        processes.enter(&session)?;
        let read = |bytes: &[u8]| Some(read_event::<Event>(bytes));
        let reader = RingReader::start_every(&session, RING, POLL_INTERVAL, EventClock::Boot, read)
            .map_err(SchedError::from)?;
        hooks::attach(&mut session, &module, module.programs.len()).map_err(SchedError::from)?;
        processes.enter_children(&session)?;
        let trace = RequestTrace::create().map_err(SocketError::Memory)?;
        let (path, stop) = (trace.path(), Arc::new(AtomicBool::new(false)));
        let complete = Arc::new(AtomicU64::new(0));
        let connections = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            session,
            processes: processes.clone(),
            ended: EndedProcesses::default(),
            order: Reorder::new(),
            connections: Connections::new(),
            listening: ListeningPorts::for_processes(
                processes.pids.iter().copied().map(Pid).collect(),
            ),
            ports: BTreeSet::new(),
            trace,
            complete: Arc::clone(&complete),
            named: Arc::clone(&connections),
        };
        let seen = Arc::clone(&stop);
        let thread = Builder::new()
            .name("sockets".to_owned())
            .spawn(move || writer.run(reader, &seen))
            .map_err(SocketError::Thread)?;
        Ok(Self {
            path,
            stop,
            complete,
            connections,
            thread: Some(thread),
        })
    }

    /// Returns the path of the trace. This process can open it until the recording ends, and keep it
    /// open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the time of the boot clock up to which all requests are in the trace, in nanoseconds:
    /// some 100 ms ago, since events of several CPUs are put in order, and the last send of a reply
    /// shows later.
    pub fn complete(&self) -> u64 {
        self.complete.load(Ordering::Acquire)
    }

    /// Returns the number of connections that the trace has named: if it grows, there are owners to
    /// read.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Acquire)
    }

    /// Ends the recording: all requests seen until now are in the trace after that.
    ///
    /// # Errors
    ///
    /// Fails if events could not be read, or the trace not be written.
    pub fn finish(mut self) -> Result<Totals, SocketError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take();
        thread.map_or(Ok(Totals::default()), |thread| {
            thread.join().map_err(|_| SocketError::Panicked)?
        })
    }
}

impl Drop for SocketRequests {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // SANITY: the thread's totals and errors have no reader here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Event of the ring, or what is wrong with it.
type Read = Result<Event, WrongSize>;

/// Work of the thread.
struct Writer {
    session: Session,
    processes: ProcessSet,
    ended: EndedProcesses,
    order: Reorder<Event>,
    connections: Connections,
    listening: ListeningPorts,
    /// Ports that the programs know.
    ports: BTreeSet<u16>,
    trace: RequestTrace,
    /// Time up to which the trace has all records.
    complete: Arc<AtomicU64>,
    /// Number of connections that the trace has named.
    named: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, reader: RingReader<Read>, stop: &AtomicBool) -> Result<Totals, SocketError> {
        while !stop.load(Ordering::Acquire) {
            self.enter_ports()?;
            self.ended.forget(&self.processes, &self.session)?;
            match reader.deliver(POLL_INTERVAL) {
                Delivery::Events(batch) => self.take(batch)?,
                Delivery::Idle(until) => self.order.reach(until),
            }
            while let Some(event) = self.order.pop() {
                self.event(&event)?;
            }
            let until = self.order.complete();
            let records = self.connections.until(until);
            self.write(&records)?;
            let complete = until.saturating_sub(connections::HOLD);
            self.complete.store(complete, Ordering::Release);
        }
        self.session.detach();
        let mut rest = Vec::new();
        reader.finish(|batch| rest.extend(batch));
        self.take(rest)?;
        while let Some(event) = self.order.pop_any() {
            self.event(&event)?;
        }
        let records = self.connections.finish();
        self.write(&records)?;
        let lost: Vec<u64> = NamedMap::find(&self.session, UNSENT)?.values(0)?;
        Ok(Totals {
            lost: lost.iter().sum(),
            ..self.connections.totals
        })
    }

    /// Tells the programs on which ports the processes listen.
    fn enter_ports(&mut self) -> Result<(), SocketError> {
        self.listening.refresh();
        let known = NamedMap::find(&self.session, PORTS)?;
        for gone in self.ports.difference(self.listening.own()) {
            known.delete(&u32::from(*gone))?;
        }
        let own = self.listening.own().iter().take(MAX_PORTS as usize);
        let own: BTreeSet<u16> = own.copied().collect();
        for new in own.difference(&self.ports) {
            known.put(u32::from(*new), &1_u32)?;
        }
        self.ports = own;
        Ok(())
    }

    fn take(&mut self, batch: Vec<Read>) -> Result<(), SocketError> {
        for event in batch {
            let event = event.map_err(SchedError::from)?;
            self.order.push(event.at, event.at, event);
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), SocketError> {
        let listening = &mut self.listening;
        let is_server = |port| listening.contains(port);
        if let Some(new) = self.connections.event(event, is_server) {
            self.trace
                .connection(new.number, new.since, &new.text)
                .map_err(SocketError::Memory)?;
            self.named.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    fn write(&mut self, records: &[RequestRecord]) -> Result<(), SocketError> {
        if records.is_empty() {
            return Ok(());
        }
        for record in records {
            self.trace.add(record);
        }
        self.trace.flush().map_err(SocketError::Memory)
    }
}
