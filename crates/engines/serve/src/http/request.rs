//! Head of a request.

/// Limit on the headers of a request.
const HEADERS: usize = 64;
/// Limit on the bytes of a method's name: a request has a blank before.
const MAX_METHOD_BYTES: usize = 16;

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

/// Reason for an answer with an error, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is no valid request.
    Bad,
    TooLong,
    TooSlow,
    /// The client has closed the connection.
    Gone,
}

impl Refusal {
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Bad | Self::Gone => "400 Bad Request",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::TooSlow => "408 Request Timeout",
        }
    }
}

/// Parts of a request's head that matter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// Path without a query.
    pub(crate) path: &'a str,
    /// Value of `Authorization`; empty if there are several.
    pub(crate) authorization: Option<&'a [u8]>,
    /// Values of `Accept`, joined by commas.
    pub(crate) accept: String,
}

impl<'a> Request<'a> {
    /// Parses a complete head.
    pub(crate) fn parse(head: &'a [u8]) -> Result<Self, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
            Ok(httparse::Status::Partial) | Err(_) => return Err(Refusal::Bad),
        }
        let (Some(method), Some(path)) = (request.method, request.path) else {
            return Err(Refusal::Bad);
        };
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        };
        let (mut authorization, mut accept) = (None, Vec::new());
        for header in request.headers.iter() {
            if header.name.eq_ignore_ascii_case("authorization") {
                // Two of them count as an empty one.
                authorization = if authorization.is_none() {
                    Some(header.value)
                } else {
                    Some(&b""[..])
                };
            } else if header.name.eq_ignore_ascii_case("accept") {
                accept.push(String::from_utf8_lossy(header.value));
            }
        }
        let path = path.split(['?', '#']).next().unwrap_or(path);
        Ok(Self {
            method,
            path,
            authorization,
            accept: accept.join(","),
        })
    }
}

/// Returns true if these first bytes can't become a request.
pub(crate) fn is_garbage(head: &[u8]) -> bool {
    let method = head.split(|byte| *byte == b' ').next().unwrap_or(head);
    method.len() > MAX_METHOD_BYTES || !method.iter().all(u8::is_ascii_graphic)
}

/// Secret word that clients must send.
pub struct Token(Vec<u8>);

impl Token {
    /// Reads the first line of a file; `None` if it is empty, or not printable ASCII without
    /// blanks.
    pub fn parse(file: &[u8]) -> Option<Self> {
        let line = file.split(|byte| *byte == b'\n').next()?.trim_ascii();
        (!line.is_empty() && line.iter().all(u8::is_ascii_graphic)).then(|| Self(line.to_vec()))
    }

    /// Returns true if it is in the value of `Authorization` (RFC 6750, 2.1).
    pub fn is_in(&self, authorization: Option<&[u8]>) -> bool {
        let Some((scheme, rest)) = authorization.and_then(|value| value.split_at_checked(6)) else {
            return false;
        };
        let Some(given) = rest.strip_prefix(b" ") else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer") && is_same(&self.0, given.trim_ascii())
    }
}

/// Compares in a time that depends only on the length of `given`.
fn is_same(own: &[u8], given: &[u8]) -> bool {
    let mut differs = own.len() ^ given.len();
    for (index, byte) in given.iter().enumerate() {
        differs |= usize::from(byte ^ own[index % own.len()]);
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let head =
            b"GET /metrics?x=1 HTTP/1.1\r\nhost: a\r\nACCEPT: text/plain\r\nAccept: */*\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!(
            (request.method, request.path, &*request.accept),
            (Method::Get, "/metrics", "text/plain,*/*")
        );
        let status = |head: &[u8]| Request::parse(head).unwrap_err();
        assert_eq!(status(b"\r\n\r\n"), Refusal::Bad);
        assert_eq!(status(b"GET / HTTP/9.9\r\n\r\n"), Refusal::Bad);
        assert_eq!(
            status(b"GET / HTTP/1.1\r\n\xff\xff: \r\n\r\n"),
            Refusal::Bad
        );
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(status(many.as_bytes()), Refusal::TooLong);
        assert!(
            is_garbage(b"\x16\x03\x01")
                && is_garbage(&[b'A'; 100])
                && !is_garbage(b"")
                && !is_garbage(b"GET /")
        );
    }

    #[test]
    fn a_token_is_the_whole_word() {
        let token = Token::parse(b"s3cret\nmore").unwrap();
        for (value, matches) in [
            (&b"Bearer s3cret"[..], true),
            (b"bearer  s3cret ", true),
            (b"Bearer s3cre", false),
            (b"Bearer s3crets3cret", false),
            (b"Bearer ", false),
            (b"Bearers3cret", false),
            (b"Basic s3cret", false),
            (b"s3cret", false),
            (b"", false),
        ] {
            assert_eq!(
                token.is_in(Some(value)),
                matches,
                "{}",
                String::from_utf8_lossy(value)
            );
        }
        assert!(
            !token.is_in(None) && Token::parse(b"\n").is_none() && Token::parse(b"a b").is_none()
        );
    }
}
