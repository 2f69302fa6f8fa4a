//! Queries of Open vSwitch, its database and DPDK, and parsers of their answers: JSON-RPC 1.0
//! without frames for the first two (`ovsdb(7)`, `ovs-appctl(8)`; RFC 7047 for the database), one
//! message per message for DPDK's telemetry.
//!
//! No query changes anything, and there is no way to send another one.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::{FirstElement, Map, Row, Rows, TextValue};

/// Query to a daemon of Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// `dpif-netdev/pmd-perf-show`, with the history of milliseconds and without histograms.
    Perf,
    /// `dpif-netdev/pmd-stats-show`.
    Stats,
    /// `dpif-netdev/pmd-rxq-show`.
    Queues,
    /// Query to the database: the column `other_config` of the table `Open_vSwitch`.
    Settings,
}

/// Reason why there is no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// Answer that is not JSON, or has no result.
    Malformed,
    /// Refusal by the daemon, with its reason: untrusted text.
    Refused(String),
}

impl Query {
    /// Returns the text of the query.
    pub fn request(self) -> String {
        let show = |method: &str, params: &[&str]| {
            json!({"id": 0, "method": method, "params": params}).to_string()
        };
        match self {
            Self::Perf => show("dpif-netdev/pmd-perf-show", &["-nh", "-ms", "1000"]),
            Self::Stats => show("dpif-netdev/pmd-stats-show", &[]),
            Self::Queues => show("dpif-netdev/pmd-rxq-show", &[]),
            Self::Settings => {
                let select = json!({"op": "select", "table": "Open_vSwitch", "where": [], "columns": ["other_config"]});
                json!({"id": 0, "method": "transact", "params": ["Open_vSwitch", select]})
                    .to_string()
            }
        }
    }
}

/// Scanner for the end of the first JSON value of a stream, which has no other delimiter. It looks
/// at each byte once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framer {
    seen: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Framer {
    /// Returns the length of the value if it has ended within the bytes received so far.
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

/// Returns the text of a daemon's answer.
///
/// # Errors
///
/// Returns an error if the answer has no text.
pub fn answered_text(answer: &[u8]) -> Result<String, QueryError> {
    match result(answer)? {
        TextValue::Text(text) => Ok(text),
        TextValue::Null | TextValue::Other => Err(QueryError::Malformed),
    }
}

/// Returns the settings in the database's answer, as pairs of name and value: untrusted text.
///
/// # Errors
///
/// Returns an error if the answer has no settings.
pub fn answered_settings(answer: &[u8]) -> Result<Vec<(String, String)>, QueryError> {
    let rows: FirstElement<Rows> = result(answer)?;
    let settings = rows.0.and_then(|Rows { rows }| rows.0).map(
        |Row {
             other_config: Map(pairs),
         }| pairs,
    );
    settings.ok_or(QueryError::Malformed)
}

/// Reads a result, and keeps nothing else of the answer.
fn result<T: DeserializeOwned + Default>(answer: &[u8]) -> Result<T, QueryError> {
    #[derive(Deserialize)]
    struct Answer<T> {
        #[serde(default)]
        error: TextValue,
        result: Option<T>,
    }
    let found: Result<Answer<T>, _> = serde_json::from_slice(answer);
    match found {
        Ok(Answer {
            error: TextValue::Null,
            result: Some(result),
        }) => Ok(result),
        Ok(Answer {
            error: TextValue::Text(error),
            ..
        }) => Err(QueryError::Refused(error.trim().to_owned())),
        Ok(Answer {
            error: TextValue::Other,
            ..
        }) => Err(QueryError::Refused("an error that is no text".to_owned())),
        Ok(_) | Err(_) => Err(QueryError::Malformed),
    }
}

/// Returns the answer of DPDK's telemetry: the value after the name of the query. Its messages have
/// at most some KiB.
pub fn telemetry(answer: &[u8]) -> Option<Value> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let (_, value) = answer.as_object()?.iter().next()?;
    (!value.is_null()).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::MAX_SETTINGS;

    #[test]
    fn answers_end_where_they_end() {
        let stream = br#"{"id":0,"result":"a}\"]\\","error":null}{"id""#;
        let mut framer = Framer::default();
        let ends: Vec<usize> = (0..=stream.len())
            .filter_map(|length| framer.end(&stream[..length]))
            .take(1)
            .collect();
        assert_eq!(ends, [stream.len() - 5]);
        assert_eq!(answered_text(&stream[..ends[0]]), Ok("a}\"]\\".to_owned()));
        assert_eq!(Framer::default().end(b"  ]"), Some(3));
    }

    #[test]
    fn errors_are_given() {
        let answer = br#"{"id":0,"error":"\"no/such\" is not a valid command\n"}"#;
        assert_eq!(
            answered_text(answer),
            Err(QueryError::Refused(
                "\"no/such\" is not a valid command".to_owned()
            ))
        );
        assert_eq!(answered_text(b"{}"), Err(QueryError::Malformed));
        assert_eq!(answered_text(b"\xff"), Err(QueryError::Malformed));
    }

    /// Unrequested parts are dropped, however large.
    #[test]
    fn answers_with_more_than_was_asked_for_are_read() {
        let answer = br#"{"x":[{"":0}],"result":"text","error":null,"id":{"y":[[]]}}"#;
        assert_eq!(answered_text(answer), Ok("text".to_owned()));
        assert_eq!(
            answered_text(br#"{"result":[{"":0},{"":0}]}"#),
            Err(QueryError::Malformed)
        );
        let error = br#"{"result":null,"error":[{"":0}]}"#;
        assert_eq!(
            answered_text(error),
            Err(QueryError::Refused("an error that is no text".to_owned()))
        );
        assert_eq!(
            answered_text(br#"{"result":null,"error":null}"#),
            Err(QueryError::Malformed)
        );
        for answer in [
            &br#"{"result":[]}"#[..],
            br#"{"result":[{}]}"#,
            br#"{"result":[{"rows":[{"other_config":7}]}]}"#,
        ] {
            assert_eq!(
                answered_settings(answer),
                Err(QueryError::Malformed),
                "{}",
                String::from_utf8_lossy(answer)
            );
        }
        let more = br#"{"result":[{"rows":[{"other_config":["map",[["a","b","c"],7,["d"],[["e"],"f"],["g","h"]],9],"z":1},{}]},8]}"#;
        assert_eq!(
            answered_settings(more),
            Ok(vec![("a".into(), "b".into()), ("g".into(), "h".into())])
        );
        let pairs = r#"["k","v"],"#.repeat(MAX_SETTINGS + 9);
        let many = format!(
            r#"{{"result":[{{"rows":[{{"other_config":["map",[{}]]}}]}}]}}"#,
            pairs.trim_end_matches(',')
        );
        assert_eq!(
            answered_settings(many.as_bytes()).map(|all| all.len()),
            Ok(MAX_SETTINGS)
        );
    }

    #[test]
    fn settings_are_pairs() {
        let answer =
            br#"{"id":0,"result":[{"rows":[{"other_config":["map",[["pmd-cpu-mask","0x2"],["x",7]]]}]}],"error":null}"#;
        assert_eq!(
            answered_settings(answer),
            Ok(vec![("pmd-cpu-mask".to_owned(), "0x2".to_owned())])
        );
    }

    #[test]
    fn nothing_that_is_asked_changes_anything() {
        for question in [Query::Perf, Query::Stats, Query::Queues] {
            assert!(question.request().contains("-show\""), "{question:?}");
        }
        assert!(Query::Settings.request().contains("\"select\""));
    }

    #[test]
    fn telemetry_has_values() {
        assert_eq!(
            telemetry(br#"{"/eal/lcore/list":[0,1]}"#),
            Some(json!([0, 1]))
        );
        assert_eq!(telemetry(br#"{"/nope":null}"#), None);
    }
}
