//! The server's main loop, and its models: where a connection is served.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::listener::Listener;
use super::service::{Batch, Connection, Service};
use super::{Model, ServerOptions};

/// Environment variable that makes the process serve one connection, its standard input: its
/// number.
const CONNECTION: &str = "DPTRACE_TEST_SERVER_CONNECTION";
/// Start of the line with the server's address.
pub(super) const LISTENING: &str = "listening ";
/// Number of the workers of [`Model::Pool`].
const WORKERS: u32 = 2;
/// Time that processes have for the rest of their connections when the server ends.
const LAST_MOMENTS: Duration = Duration::from_secs(2);
/// Keys of the main loop; a connection's is its number after the first.
const INPUT: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

/// Runs the server: prints its address, serves until its end, and prints its waits.
pub fn serve(options: &ServerOptions) -> io::Result<()> {
    let service = Arc::new(Service::start(options)?);
    let number = std::env::var(CONNECTION).ok();
    if let Some(number) = number.and_then(|number| number.parse().ok()) {
        let stream = io::stdin().as_fd().try_clone_to_owned()?;
        service.serve(Connection::new(stream, number));
    } else {
        let end = Instant::now() + Duration::from_secs(options.seconds.into());
        let mut main = MainLoop::start(options, &service)?;
        println!("{LISTENING}{}", main.listener.address()?);
        main.run(end)?;
        main.end();
    }
    service.print_waits();
    Ok(())
}

/// The thread that accepts, and receives if the model has it so.
struct MainLoop {
    model: Model,
    service: Arc<Service>,
    epoll: Arc<OwnedFd>,
    listener: Listener,
    accepted: u32,
    /// Connections that this thread receives from.
    connections: BTreeMap<u64, Connection>,
    /// Queue of the workers.
    batches: Sender<Batch>,
    children: Vec<Child>,
}

impl MainLoop {
    fn start(options: &ServerOptions, service: &Arc<Service>) -> io::Result<Self> {
        let listener = Listener::bind(options.unix.as_deref())?;
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let key = epoll::EventData::new_u64;
        epoll::add(&epoll, &listener, key(LISTENER), epoll::EventFlags::IN)?;
        match epoll::add(&epoll, io::stdin(), key(INPUT), epoll::EventFlags::IN) {
            // A file, or /dev/null: then only the time ends the server.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let (batches, queue) = channel();
        if options.model == Model::Pool {
            start_workers(service, &epoll, queue)?;
        }
        Ok(Self {
            model: options.model,
            service: Arc::clone(service),
            epoll,
            listener,
            accepted: 0,
            connections: BTreeMap::new(),
            batches,
            children: Vec::new(),
        })
    }

    fn run(&mut self, end: Instant) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let left = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    INPUT => return Ok(()),
                    LISTENER => self.accept()?,
                    key => self.receive(key),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let (port, stream) = self.listener.accept()?;
        self.accepted += 1;
        let number = port.map_or(self.accepted, u32::from);
        match self.model {
            Model::Thread => {
                let service = Arc::clone(&self.service);
                std::thread::Builder::new()
                    .name(format!("connection {number}"))
                    .spawn(move || service.serve(Connection::new(stream, number)))?;
            }
            Model::Epoll | Model::Pool => {
                rustix::io::ioctl_fionbio(&stream, true)?;
                let key = FIRST_CONNECTION + u64::from(number);
                let data = epoll::EventData::new_u64(key);
                let mut flags = epoll::EventFlags::IN;
                // Replies keep their order, since the next receive waits until the last was sent.
                flags.set(epoll::EventFlags::ONESHOT, self.model == Model::Pool);
                epoll::add(&self.epoll, &stream, data, flags)?;
                let connection = Connection::new(stream, number);
                self.connections.insert(key, connection);
            }
            Model::Fork => {
                let child = crate::command(std::env::current_exe()?)
                    .args(std::env::args_os().skip(1))
                    .env(CONNECTION, number.to_string())
                    .stdin(stream)
                    .spawn()?;
                self.children
                    .retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
                self.children.push(child);
            }
        }
        Ok(())
    }

    fn receive(&mut self, key: u64) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let batch = connection.receive(self.service.receive);
        let goes_on = batch.is_some_and(|batch| match self.model {
            Model::Pool => self.batches.send(batch).is_ok(),
            _ => self.service.reply(&batch).is_ok(),
        });
        if !goes_on {
            self.connections.remove(&key);
        }
    }

    /// Waits for the processes of connections that have just been closed, and ends all others.
    fn end(&mut self) {
        let end = Instant::now() + LAST_MOMENTS;
        for child in &mut self.children {
            while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            crate::end(child);
        }
    }
}

/// Starts the threads that reply, and then let the main loop receive again.
fn start_workers(
    service: &Arc<Service>,
    epoll: &Arc<OwnedFd>,
    queue: Receiver<Batch>,
) -> io::Result<()> {
    let queue = Arc::new(Mutex::new(queue));
    for worker in 0..WORKERS {
        let (service, epoll, queue) = (Arc::clone(service), Arc::clone(epoll), Arc::clone(&queue));
        let next = move || queue.lock().ok()?.recv().ok();
        let work = move || {
            while let Some(batch) = next() {
                // If the client is gone, the main loop receives the end of the connection.
                let _ = service.reply(&batch);
                let key = epoll::EventData::new_u64(FIRST_CONNECTION + u64::from(batch.connection));
                let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
                let _ = epoll::modify(&epoll, &batch.stream, key, flags);
            }
        };
        std::thread::Builder::new()
            .name(format!("worker {worker}"))
            .spawn(work)?;
    }
    Ok(())
}
