//! The server as a process of a test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use clap::Parser as _;

use super::listener::Address;
use super::server::{LISTENING, serve};
use super::{Client, ServerOptions, Wait, word};

/// Environment variable that makes the test program the server: a line for each argument.
const OPTIONS: &str = "DPTRACE_TEST_SERVER";

/// Runs as the server if [`Server::start`] started this process, and ends it; returns at once if
/// not. An ignored test calls it.
///
/// # Panics
/// If the server cannot run.
pub fn serve_if_started() {
    let Ok(options) = std::env::var(OPTIONS) else {
        return;
    };
    let options = ServerOptions::parse_from(["server"].into_iter().chain(options.lines()));
    serve(&options).unwrap_or_else(|error| panic!("the server: {error}"));
    // The harness would print its result in pieces, between lines of other processes.
    std::process::exit(0);
}

impl ServerOptions {
    /// Returns the arguments from which these options are parsed, one in each line.
    fn to_arguments(&self) -> String {
        let Self {
            model,
            unix,
            receive,
            send,
            seconds,
        } = self;
        let (model, receive, send) = (word(model), word(receive), word(send));
        let unix = unix
            .as_deref()
            .map_or_else(String::new, |path| format!("\n--unix={}", path.display()));
        format!("--model={model}\n--receive={receive}\n--send={send}\n--for={seconds}{unix}")
    }
}

/// Process of a server, which ends when this is dropped.
pub struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    address: Address,
    /// Connections up to now.
    connections: u32,
}

impl Server {
    /// Starts this test program again as the server: `test` is the ignored test that calls
    /// [`serve_if_started`]. It ends with the calling thread at the latest.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(test: &str, options: &ServerOptions) -> Self {
        let started = std::env::current_exe().and_then(|own| {
            crate::command(own)
                // With two threads the harness does not begin a line before the test.
                .args([
                    test,
                    "--exact",
                    "--ignored",
                    "--nocapture",
                    "--test-threads=2",
                ])
                .env(OPTIONS, options.to_arguments())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        });
        let mut child = started.unwrap_or_else(|error| panic!("starting the server: {error}"));
        let Some(output) = child.stdout.take() else {
            panic!("the server has no output");
        };
        let mut output = BufReader::new(output);
        let address = loop {
            let mut line = String::new();
            let length = output
                .read_line(&mut line)
                .unwrap_or_else(|error| panic!("output of the server: {error}"));
            assert!(length > 0, "the server ended early: is {test} its test?");
            if let Some(address) = line.strip_prefix(LISTENING) {
                break Address::from(address.trim_end());
            }
        };
        Self {
            child,
            output,
            address,
            connections: 0,
        }
    }

    /// Returns the id of the server's process, which accepts.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address: `127.0.0.1:PORT`, or the path of the Unix socket.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Opens as many connections.
    ///
    /// # Panics
    /// If the server does not listen any more.
    pub fn connect(&mut self, connections: u32) -> Client {
        let first = self.connections + 1;
        self.connections += connections;
        Client::connect(&self.address, first..first + connections)
            .unwrap_or_else(|error| panic!("connecting to {}: {error}", self.address()))
    }

    /// Ends the server, and returns its waits. In the model `fork`, drop the clients before: a
    /// process has its waits only until it is killed.
    ///
    /// # Panics
    /// If the server failed.
    #[must_use]
    pub fn end(mut self) -> Vec<Wait> {
        drop(self.child.stdin.take());
        let lines = std::io::read_to_string(&mut self.output)
            .unwrap_or_else(|error| panic!("output of the server: {error}"));
        let ended = self.child.wait();
        assert!(
            ended.is_ok_and(|status| status.success()),
            "the server failed: {lines}"
        );
        lines.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        crate::end(&mut self.child);
    }
}
