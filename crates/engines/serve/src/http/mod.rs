//! Web server: as little of HTTP/1.1 as Prometheus, curl and a browser need.
//!
//! Each client gets a thread, and there are few at a time. Each has some seconds for its request
//! and for its answer. A connection ends with its first answer. `httparse` reads heads of requests;
//! nothing else of a request is read.

mod request;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use metrics::text::Format;

use super::limits::CLIENTS;
use super::store::Shared;
use super::targets::Targets;
use super::{connections, page};
pub use request::Token;
use request::{Method, Refusal, Request};

/// Time that a client has for its request, and again for taking its answer.
const IO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum age of the time of threads when it is shown.
const MAX_AGE: Duration = Duration::from_millis(100);
/// Limit on the bytes of a request's head.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// Number of bytes that are written at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Wait after an error of the listening socket, for example if there are no descriptors left. Also
/// the wait for the rest of a request.
const SOCKET_WAIT: Duration = Duration::from_millis(100);

const INDEX: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>dptrace serve</title><h1>dptrace serve</h1>\
    <ul><li><a href=/metrics>/metrics</a>: for Prometheus<li><a href=/connections>/connections</a>: percentiles of each stage of \
    each connection, as JSON<li><a href=/healthz>/healthz</a>: whether it runs</ul>\n";

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Web server.
pub(crate) struct Server {
    listener: TcpListener,
    token: Option<Token>,
    shared: Arc<Shared>,
    targets: Arc<Targets>,
    clients: AtomicUsize,
}

/// Answer to a request.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    /// Further header, with its line's end.
    header: &'static str,
    body: String,
}

impl Server {
    pub(crate) fn new(
        listener: TcpListener,
        token: Option<Token>,
        shared: Arc<Shared>,
        targets: Arc<Targets>,
    ) -> Self {
        Self {
            listener,
            token,
            shared,
            targets,
            clients: AtomicUsize::new(0),
        }
    }

    /// Starts to answer, in threads of its own.
    pub(crate) fn start(self) -> anyhow::Result<()> {
        let thread = std::thread::Builder::new().name("http".into());
        let server = Arc::new(self);
        thread
            .spawn(move || server.accept())
            .map(drop)
            .context("starting the thread of the web server")
    }

    fn accept(self: &Arc<Self>) {
        loop {
            let Ok((stream, _)) = self.listener.accept() else {
                std::thread::sleep(SOCKET_WAIT);
                continue;
            };
            if self.clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS {
                self.clients.fetch_sub(1, Ordering::AcqRel);
                // Without a wait: bytes that do not fit the socket's buffer are lost.
                let _ = stream.set_nonblocking(true);
                let _ = (&stream)
                    .write_all(Answer::error("503 Service Unavailable").head(0).as_bytes());
                continue;
            }
            let server = Arc::clone(self);
            let serve = move || {
                // An answer that a client does not take is its own loss.
                let _ = server.serve(&stream);
                server.clients.fetch_sub(1, Ordering::AcqRel);
            };
            if std::thread::Builder::new()
                .name("http client".into())
                .spawn(serve)
                .is_err()
            {
                self.clients.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Answers one request.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        let request = read(stream, &mut head, Instant::now() + IO_TIMEOUT);
        let is_head = matches!(&request, Ok(request) if request.method == Method::Head);
        let answer = match request {
            Ok(request) => self.answer(&request),
            Err(Refusal::Gone) => return Ok(()),
            Err(refusal) => Answer::error(refusal.status()),
        };
        let until = Instant::now() + IO_TIMEOUT;
        write(stream, answer.head(answer.body.len()).as_bytes(), until)?;
        if !is_head {
            write(stream, answer.body.as_bytes(), until)?;
        }
        // Closing before all was read makes the client lose the answer (RFC 9112, 9.6).
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(SOCKET_WAIT))?;
        let mut rest = [0; 4096];
        for _ in 0..16 {
            if (&mut &*stream).read(&mut rest)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request<'_>) -> Answer {
        if request.method == Method::Other {
            let header = "Allow: GET, HEAD\r\n";
            return Answer {
                header,
                ..Answer::error("405 Method Not Allowed")
            };
        }
        let is_open = request.path == "/healthz";
        if !is_open
            && self
                .token
                .as_ref()
                .is_some_and(|token| !token.is_in(request.authorization))
        {
            let header = "WWW-Authenticate: Bearer\r\n";
            return Answer {
                header,
                ..Answer::error("401 Unauthorized")
            };
        }
        match request.path {
            "/metrics" => {
                let format = Format::accepted(&request.accept);
                self.targets.advance(MAX_AGE);
                let standing = self.targets.standing();
                let body = page::page(format, &self.shared.lock(), &standing);
                Answer::ok(format.content_type(), body)
            }
            "/connections" => Answer::ok(JSON, connections::page(&self.shared.lock())),
            "/healthz" => Answer::ok(PLAIN, "ok\n".to_owned()),
            "/" => Answer::ok(HTML, INDEX.to_owned()),
            _ => Answer::error("404 Not Found"),
        }
    }
}

impl Answer {
    fn ok(content_type: &'static str, body: String) -> Self {
        Self {
            status: "200 OK",
            content_type,
            header: "",
            body,
        }
    }

    fn error(status: &'static str) -> Self {
        Self {
            status,
            content_type: PLAIN,
            header: "",
            body: format!("{status}\n"),
        }
    }

    fn head(&self, length: usize) -> String {
        let Self {
            status,
            content_type,
            header,
            ..
        } = self;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{header}\r\n"
        )
    }
}

/// Reads a request's head.
fn read<'a>(
    mut stream: &TcpStream,
    head: &'a mut Vec<u8>,
    until: Instant,
) -> Result<Request<'a>, Refusal> {
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= MAX_HEAD_BYTES {
            return Err(Refusal::TooLong);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refusal::TooSlow);
        }
        match stream.read(&mut piece) {
            Ok(0) if head.is_empty() => return Err(Refusal::Gone),
            Ok(0) => return Err(Refusal::Bad),
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                return Err(Refusal::TooSlow);
            }
            Err(_) => return Err(Refusal::Gone),
        }
        // Bytes that can't become a request need not be waited for.
        if request::is_garbage(head) {
            return Err(Refusal::Bad);
        }
    }
    Request::parse(head)
}

/// Writes all bytes before `until`.
fn write(mut stream: &TcpStream, bytes: &[u8], until: Instant) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let time = until.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(time))?;
        match stream.write(&left[..left.len().min(CHUNK_BYTES)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => left = &left[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
