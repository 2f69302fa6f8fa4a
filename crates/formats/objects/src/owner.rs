//! Parses an owner's description: SPDK's newer traces name a record's connection, bdev or thread in
//! plain text.
//!
//! Sources: `lib/nvmf/tcp.c` and `ctrlr.c` (peer address, then subsystem NQN, listener address and
//! `qid:`), `lib/iscsi/iscsi.c` (initiator address, then target name or `discovery`),
//! `lib/bdev/bdev.c` (`bdev_` and the name), `lib/event/reactor.c` (`reactor_` and the lcore),
//! `lib/thread/thread.c` (the thread's name).

use text::number::is_digits;

/// The parts of a description. The whole text is always available as `description`, even if it does
/// not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerProperties<'a> {
    /// The first `count` are set. An array, since this is parsed for every record that is filtered
    /// by it.
    properties: [(&'static str, &'a str); MAX_PROPERTIES],
    count: usize,
}

/// Maximum number of properties in a description, itself included.
const MAX_PROPERTIES: usize = 5;

impl<'a> OwnerProperties<'a> {
    /// Names accepted by [`Self::get`].
    pub const NAMES: [&'static str; 9] = [
        "description",
        "peer",
        "subnqn",
        "listener",
        "qid",
        "target",
        "bdev",
        "reactor",
        "name",
    ];

    /// Splits a description into its properties.
    pub fn parse(description: &'a str) -> Self {
        let mut this = Self::default();
        this.push("description", description);
        if let Some(bdev) = description.strip_prefix("bdev_") {
            this.push("bdev", bdev);
        } else if let Some(lcore) = description
            .strip_prefix("reactor_")
            .filter(|n| is_digits(n))
        {
            this.push("reactor", lcore);
        } else if !description.contains(' ') && !is_address(description) {
            this.push("name", description);
        } else {
            this.connection(description);
        }
        this
    }

    fn push(&mut self, name: &'static str, value: &'a str) {
        if let Some(free) = self.properties.get_mut(self.count) {
            *free = (name, value);
            self.count += 1;
        }
    }

    /// Parses `PEER SUBNQN LISTENER qid:N` as far as it goes; the first word that does not fit ends
    /// it.
    fn connection(&mut self, description: &'a str) {
        let mut words = description.split(' ').peekable();
        if let Some(peer) = words.next_if(|w| is_address(w)) {
            self.push("peer", peer);
        }
        if let Some(subnqn) = words.next_if(|w| w.starts_with("nqn.")) {
            self.push("subnqn", subnqn);
        } else if let Some(target) =
            words.next_if(|w| w.starts_with("iqn.") || w.starts_with("eui.") || *w == "discovery")
        {
            self.push("target", target);
        }
        if let Some(listener) = words.next_if(|w| is_address(w)) {
            self.push("listener", listener);
        }
        let qid = words.next().and_then(|w| w.strip_prefix("qid:"));
        if let Some(qid) = qid.filter(|n| is_digits(n)) {
            self.push("qid", qid);
        }
    }

    /// Returns the value of a property.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value)
    }

    /// Iterates over all properties, the whole description first.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        self.properties[..self.count].iter().copied()
    }
}

/// Returns whether the text is `address:port`, with the address in any form of a transport.
fn is_address(text: &str) -> bool {
    let port = text
        .rsplit_once(':')
        .map(|(address, port)| !address.is_empty() && is_digits(port));
    port.unwrap_or(false) && !text.starts_with("nqn.") && !text.starts_with("qid:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(description: &str) -> String {
        let parsed = OwnerProperties::parse(description);
        parsed
            .iter()
            .skip(1)
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn descriptions_of_all_kinds() {
        assert_eq!(
            shown("127.0.0.1:57992 nqn.2016-06.io.spdk:cnode2 127.0.0.1:4420 qid:2"),
            "peer=127.0.0.1:57992 subnqn=nqn.2016-06.io.spdk:cnode2 listener=127.0.0.1:4420 qid=2"
        );
        assert_eq!(
            shown("[::1]:46186 nqn.2016-06.io.spdk:cnode2"),
            "peer=[::1]:46186 subnqn=nqn.2016-06.io.spdk:cnode2"
        );
        assert_eq!(shown("127.0.0.1:57992"), "peer=127.0.0.1:57992");
        assert_eq!(
            shown("10.0.0.1:3260 iqn.2016-06.io.spdk:disk1"),
            "peer=10.0.0.1:3260 target=iqn.2016-06.io.spdk:disk1"
        );
        assert_eq!(shown("bdev_Malloc1"), "bdev=Malloc1");
        assert_eq!(shown("reactor_12"), "reactor=12");
        assert_eq!(
            shown("nvmf_tgt_poll_group_000"),
            "name=nvmf_tgt_poll_group_000"
        );
        assert_eq!(shown("something else"), "");
        assert_eq!(
            OwnerProperties::parse("something else").get("description"),
            Some("something else")
        );
        assert_eq!(shown(""), "name=");
    }
}
