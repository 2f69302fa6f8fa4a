//! Operation of a request, by the first bytes that the server received.
//!
//! Only the kind of request is kept, never its contents, which are data of others: of HTTP the
//! method and the path without its query (RFC 9112, section 3), of Redis the command (RESP, "arrays
//! of bulk strings"), of PostgreSQL the type of the first message (protocol 3, "Message Formats").

/// Limit on the bytes of an operation.
pub(crate) const MAX_BYTES: usize = 40;

/// Methods of HTTP/1 (RFC 9110, section 9; RFC 5789).
const METHODS: [&str; 9] = [
    "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE",
];

/// Types of PostgreSQL's messages of a client with which a request begins.
const MESSAGES: [(u8, &str); 10] = [
    (b'Q', "Query"),
    (b'P', "Parse"),
    (b'B', "Bind"),
    (b'E', "Execute"),
    (b'F', "FunctionCall"),
    (b'S', "Sync"),
    (b'D', "Describe"),
    (b'C', "Close"),
    (b'p', "Password"),
    (b'X', "Terminate"),
];
/// Longest message of PostgreSQL that is believed (`PQ_LARGE_MESSAGE_LIMIT`, 1 GiB).
const MAX_MESSAGE: u32 = 1 << 30;
/// Codes in place of the version in PostgreSQL's first packet: `CancelRequest`, `SSLRequest`,
/// `GSSENCRequest`, and version 3.0 to 3.2 of the protocol itself.
const STARTS: [(u32, &str); 6] = [
    (80_877_102, "CancelRequest"),
    (80_877_103, "SSLRequest"),
    (80_877_104, "GSSENCRequest"),
    (0x3_0000, "Startup"),
    (0x3_0001, "Startup"),
    (0x3_0002, "Startup"),
];

/// Returns the operation of a request that begins with these bytes: `GET /path`, `SET`, `Query`,
/// `TLS`. Empty for other protocols.
pub(crate) fn name(bytes: &[u8]) -> String {
    http(bytes)
        .or_else(|| redis(bytes))
        .or_else(|| postgres(bytes).map(str::to_owned))
        .or_else(|| tls(bytes).then(|| "TLS".to_owned()))
        .unwrap_or_default()
}

/// Returns method and path of a request of HTTP/1. A path that goes on beyond the known bytes ends
/// with `*`.
fn http(bytes: &[u8]) -> Option<String> {
    let (method, rest) = METHODS.iter().find_map(|method| {
        let rest = bytes.strip_prefix(method.as_bytes())?.strip_prefix(b" ")?;
        Some((method, rest))
    })?;
    let end = rest.iter().position(|byte| b" ?#\r\n".contains(byte));
    let path = &rest[..end.unwrap_or(rest.len())];
    let is_path = |byte: &u8| byte.is_ascii_graphic();
    if path.is_empty() || !path.iter().all(is_path) {
        return Some((*method).to_owned());
    }
    let room = MAX_BYTES - method.len() - 2;
    let is_whole = end.is_some() && path.len() <= room;
    let path = &path[..path.len().min(room)];
    let more = if is_whole { "" } else { "*" };
    Some(format!("{method} {}{more}", String::from_utf8_lossy(path)))
}

/// Returns the command of a request of Redis: `*2\r\n$3\r\nGET\r\n...`.
fn redis(bytes: &[u8]) -> Option<String> {
    let rest = line(bytes.strip_prefix(b"*")?)?.1;
    let (length, rest) = line(rest.strip_prefix(b"$")?)?;
    let command = rest.get(..length)?;
    let is_word = !command.is_empty() && command.iter().all(u8::is_ascii_alphabetic);
    (is_word && length <= MAX_BYTES).then(|| String::from_utf8_lossy(command).to_ascii_uppercase())
}

/// Splits a number and the end of its line off.
fn line(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let number = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((number, &bytes[end + 2..]))
}

/// Returns the type of the first message of a client of PostgreSQL.
fn postgres(bytes: &[u8]) -> Option<&'static str> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?.first_chunk()?;
        Some(u32::from_be_bytes(*word))
    };
    // The first packet has no type, but a length and a version.
    if let Some((_, name)) = word(4).and_then(|code| STARTS.iter().find(|(it, _)| *it == code)) {
        return Some(name);
    }
    let (kind, name) = MESSAGES
        .iter()
        .find(|(kind, _)| bytes.first() == Some(kind))?;
    let length = word(1)?;
    // Each message ends with a zero, or with a number: a text of another protocol has no zero here.
    let fits = (4..MAX_MESSAGE).contains(&length) && (*kind != b'S' || length == 4);
    fits.then_some(*name)
}

/// Returns whether the bytes begin a record of TLS (RFC 8446, section 5.1).
fn tls(bytes: &[u8]) -> bool {
    matches!(bytes, [20..=23, 3, 0..=4, ..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn operations_have_the_names_of_their_protocols() {
        for (bytes, expected) in [
            (&b"GET /a/b?password=x HTTP/1.1\r\n"[..], "GET /a/b"),
            (b"POST /a#b HTTP/1.1", "POST /a"),
            (b"OPTIONS * HTTP/1.1", "OPTIONS *"),
            (b"GET /cut", "GET /cut*"),
            (b"GET /\x1b[31m HTTP/1.1", "GET"),
            (b"GETS key", ""),
            (b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n", "GET"),
            (b"*1\r\n$4\r\nP\x1bNG\r\n", ""),
            (b"*1\r\n$9\r\nPING\r\n", ""),
            (b"Q\0\0\0\x0dSELECT 1\0", "Query"),
            (b"P\0\0\0\x20\0SELECT", "Parse"),
            (b"QUIT\r\n", ""),
            (b"S\0\0\0\x04", "Sync"),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", "SSLRequest"),
            (b"\0\0\0\x54\0\x03\0\0user\0", "Startup"),
            (b"\x16\x03\x01\x02\0", "TLS"),
            (b"", ""),
        ] {
            assert_eq!(name(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_short_name_without_control_characters(bytes: Vec<u8>) {
            for prefix in [&b""[..], b"GET ", b"*1\r\n$3\r\n"] {
                let name = name(&[prefix, &bytes].concat());
                prop_assert!(name.len() <= MAX_BYTES && !name.chars().any(char::is_control));
            }
        }
    }
}
