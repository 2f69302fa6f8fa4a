//! A JSON-RPC server on a Unix socket that answers as SPDK does (`lib/jsonrpc`): one object per
//! request, indented, in pieces.

use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Deserializer, Value, json};

/// Server that answers until the test ends.
pub(crate) struct Server {
    path: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers with results, or with error messages.
    pub(crate) fn start(
        path: PathBuf,
        answer: impl Fn(&str, &Value) -> Result<Value, &'static str> + Send + 'static,
    ) -> Self {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let methods = Arc::clone(&asked);
        let serve = move |mut stream: UnixStream| {
            let requests = Deserializer::from_reader(stream.try_clone().expect("a descriptor"))
                .into_iter::<Value>();
            for request in requests.map_while(Result::ok) {
                let method = request["method"].as_str().expect("a method");
                methods
                    .lock()
                    .expect("nobody fails")
                    .push(method.to_owned());
                let mut response = json!({ "jsonrpc": "2.0", "id": request["id"] });
                match answer(method, &request["params"]) {
                    Ok(result) => response["result"] = result,
                    Err(message) => {
                        response["error"] = json!({ "code": -32601, "message": message });
                    }
                }
                let text = serde_json::to_vec_pretty(&response).expect("it is JSON");
                let (first, rest) = text.split_at(text.len() / 2);
                // The client may be gone.
                let _ = stream
                    .write_all(first)
                    .and_then(|()| stream.write_all(rest));
            }
        };
        Self::listen(path, asked, serve)
    }

    /// Starts a server that sends everybody the same text; if that is empty, the start of an answer
    /// that never ends.
    pub(crate) fn with_reply(path: PathBuf, text: Vec<u8>) -> Self {
        let serve = move |mut stream: UnixStream| {
            let request = Deserializer::from_reader(stream.try_clone().expect("a descriptor"))
                .into_iter::<Value>()
                .next();
            assert!(
                request.is_some_and(|request| request.is_ok()),
                "somebody asks"
            );
            if !text.is_empty() {
                return drop(stream.write_all(&text));
            }
            let begun = stream.write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": [0");
            let more = b", 0".repeat(10_000);
            // Until the client gives up.
            let _ = begun.and_then(|()| (0..).try_for_each(|_: u64| stream.write_all(&more)));
        };
        Self::listen(path, Arc::default(), serve)
    }

    fn listen(
        path: PathBuf,
        asked: Arc<Mutex<Vec<String>>>,
        serve: impl Fn(UnixStream) + Send + 'static,
    ) -> Self {
        let listener = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(serve));
        Self { path, asked }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the methods that were called.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody fails").clone()
    }
}
