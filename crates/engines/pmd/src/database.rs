//! The settings of Open vSwitch from its database: the daemon itself does not show them.

use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use host::control::SocketOwner;
use host::{Pid, proc};

use crate::ask::ask;
use crate::{Query, answered_settings};

/// Default socket of the database (`ovs-vswitchd(8)`).
const DEFAULT: &str = "/var/run/openvswitch/db.sock";

/// Returns the settings, if the daemon's database has a socket on this machine and answers.
pub(crate) fn settings(pid: u32) -> Option<Vec<(String, String)>> {
    let socket = socket(proc::command_line(Pid(pid)))?;
    answered_settings(&ask(pid, &socket, SocketOwner::User, Query::Settings).ok()?).ok()
}

/// Returns the socket in the daemon's arguments, `unix:PATH`; the default one if there are none.
fn socket(words: Vec<Vec<u8>>) -> Option<PathBuf> {
    let words: Vec<Vec<u8>> = words
        .into_iter()
        .skip(1)
        .filter(|word| !word.starts_with(b"-") && !word.is_empty())
        .collect();
    if words.is_empty() {
        return Some(DEFAULT.into());
    }
    let path = words.iter().find_map(|word| word.strip_prefix(b"unix:"))?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_where_the_daemon_finds_it() {
        let words = |line: &str| {
            line.split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect()
        };
        assert_eq!(
            socket(words("ovs-vswitchd unix:/run/db.sock --pidfile")),
            Some("/run/db.sock".into())
        );
        assert_eq!(
            socket(words("ovs-vswitchd --pidfile")),
            Some(DEFAULT.into())
        );
        assert_eq!(socket(words("ovs-vswitchd tcp:10.0.0.1:6640")), None);
    }
}
