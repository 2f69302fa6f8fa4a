//! What is asked of Open vSwitch, its database and DPDK, and how answers are read: JSON-RPC 1.0 without frames for the first two
//! (`ovsdb(7)`, `ovs-appctl(8)`; RFC 7047 for the database), a message for a message for DPDK's telemetry.
//!
//! Each question is one that changes nothing: there is no way to ask another one.

use serde_json::{Value, json};

/// A question to a daemon of Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `dpif-netdev/pmd-perf-show`, with the history of milliseconds and without histograms.
    Perf,
    /// `dpif-netdev/pmd-stats-show`.
    Stats,
    /// `dpif-netdev/pmd-rxq-show`.
    Queues,
    /// To the database: the column `other_config` of the table `Open_vSwitch`.
    Settings,
}

/// Why an answer is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It is no JSON, or has no result.
    Malformed,
    /// The daemon refuses, for this reason: untrusted text.
    Refused(String),
}

impl Question {
    /// The bytes of the question.
    pub fn request(self) -> String {
        let show = |method: &str, params: &[&str]| json!({"id": 0, "method": method, "params": params}).to_string();
        match self {
            Self::Perf => show("dpif-netdev/pmd-perf-show", &["-nh", "-ms", "1000"]),
            Self::Stats => show("dpif-netdev/pmd-stats-show", &[]),
            Self::Queues => show("dpif-netdev/pmd-rxq-show", &[]),
            Self::Settings => {
                let select = json!({"op": "select", "table": "Open_vSwitch", "where": [], "columns": ["other_config"]});
                json!({"id": 0, "method": "transact", "params": ["Open_vSwitch", select]}).to_string()
            }
        }
    }
}

/// Finds the end of the first JSON value of a stream, which has no other end. Each byte is looked at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framer {
    seen: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Framer {
    /// Whether the value has come to its end, with all that has been received up to now; if so, how many bytes it has.
    pub fn end(&mut self, received: &[u8]) -> Option<usize> {
        for (at, byte) in received.iter().enumerate().skip(self.seen) {
            self.seen = at + 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// The text that a daemon answers with.
///
/// # Errors
///
/// The answer has none.
pub fn answered_text(answer: &[u8]) -> Result<String, NoAnswer> {
    match result(answer)? {
        Value::String(text) => Ok(text),
        _ => Err(NoAnswer::Malformed),
    }
}

/// The settings that the database answers with, by name: untrusted text.
///
/// # Errors
///
/// The answer has none.
pub fn answered_settings(answer: &[u8]) -> Result<Vec<(String, String)>, NoAnswer> {
    let result = result(answer)?;
    // A map is `["map", [[key, value], ...]]` (RFC 7047, section 5.1).
    let map = result.pointer("/0/rows/0/other_config/1").and_then(Value::as_array).ok_or(NoAnswer::Malformed)?;
    let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
    Ok(map.iter().filter_map(pair).collect())
}

fn result(answer: &[u8]) -> Result<Value, NoAnswer> {
    let mut answer: Value = serde_json::from_slice(answer).map_err(|_| NoAnswer::Malformed)?;
    match answer.get("error") {
        None | Some(Value::Null) => {}
        Some(Value::String(error)) => return Err(NoAnswer::Refused(error.trim().to_owned())),
        Some(error) => return Err(NoAnswer::Refused(error.to_string())),
    }
    answer.get_mut("result").map(Value::take).ok_or(NoAnswer::Malformed)
}

/// What DPDK's telemetry answers to a question: what stands behind the question's own name.
pub fn telemetry(answer: &[u8]) -> Option<Value> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let (_, value) = answer.as_object()?.iter().next()?;
    (!value.is_null()).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_where_they_end() {
        let stream = br#"{"id":0,"result":"a}\"]\\","error":null}{"id""#;
        let mut framer = Framer::default();
        let ends: Vec<usize> = (0..=stream.len()).filter_map(|length| framer.end(&stream[..length])).take(1).collect();
        assert_eq!(ends, [stream.len() - 5]);
        assert_eq!(answered_text(&stream[..ends[0]]), Ok("a}\"]\\".to_owned()));
        assert_eq!(Framer::default().end(b"  ]"), Some(3));
    }

    #[test]
    fn errors_are_given() {
        let answer = br#"{"id":0,"error":"\"no/such\" is not a valid command\n"}"#;
        assert_eq!(answered_text(answer), Err(NoAnswer::Refused("\"no/such\" is not a valid command".to_owned())));
        assert_eq!(answered_text(b"{}"), Err(NoAnswer::Malformed));
        assert_eq!(answered_text(b"\xff"), Err(NoAnswer::Malformed));
    }

    #[test]
    fn settings_are_pairs() {
        let answer =
            br#"{"id":0,"result":[{"rows":[{"other_config":["map",[["pmd-cpu-mask","0x2"],["x",7]]]}]}],"error":null}"#;
        assert_eq!(answered_settings(answer), Ok(vec![("pmd-cpu-mask".to_owned(), "0x2".to_owned())]));
    }

    #[test]
    fn nothing_that_is_asked_changes_anything() {
        for question in [Question::Perf, Question::Stats, Question::Queues] {
            assert!(question.request().contains("-show\""), "{question:?}");
        }
        assert!(Question::Settings.request().contains("\"select\""));
    }

    #[test]
    fn telemetry_has_values() {
        assert_eq!(telemetry(br#"{"/eal/lcore/list":[0,1]}"#), Some(json!([0, 1])));
        assert_eq!(telemetry(br#"{"/nope":null}"#), None);
    }
}
