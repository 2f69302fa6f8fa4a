//! The head of a request.

/// Headers that a request may have.
const HEADERS: usize = 64;
/// The longest method's name, with the blank behind it, and a path of some length: what is longer without a blank is no request.
const LONGEST_METHOD: usize = 16;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

/// Why there is no answer but an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is no request.
    Bad,
    TooLong,
    TooSlow,
    /// Nobody is there any more.
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

/// What of a request's head matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// Without a query.
    pub(crate) path: &'a str,
    /// The value of `Authorization`.
    pub(crate) authorization: Option<&'a [u8]>,
    /// The values of `Accept`, with commas.
    pub(crate) accept: String,
}

impl<'a> Request<'a> {
    /// Of a whole head.
    pub(crate) fn parse(head: &'a [u8]) -> Result<Self, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
            Ok(httparse::Status::Partial) | Err(_) => return Err(Refusal::Bad),
        }
        let (Some(method), Some(path)) = (request.method, request.path) else { return Err(Refusal::Bad) };
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        };
        let (mut authorization, mut accept) = (None, Vec::new());
        for header in request.headers.iter() {
            if header.name.eq_ignore_ascii_case("authorization") {
                // Two of them are none.
                authorization = if authorization.is_none() { Some(header.value) } else { Some(&b""[..]) };
            } else if header.name.eq_ignore_ascii_case("accept") {
                accept.push(String::from_utf8_lossy(header.value));
            }
        }
        let path = path.split(['?', '#']).next().unwrap_or(path);
        Ok(Self { method, path, authorization, accept: accept.join(",") })
    }
}

/// Whether these first bytes can't become a request.
pub(crate) fn is_garbage(head: &[u8]) -> bool {
    let method = head.split(|byte| *byte == b' ').next().unwrap_or(head);
    method.len() > LONGEST_METHOD || !method.iter().all(u8::is_ascii_graphic)
}

/// The word that clients must know.
pub struct Token(Vec<u8>);

impl Token {
    /// Of a file: its first line, which is not empty.
    pub fn of(file: &[u8]) -> Option<Self> {
        let line = file.split(|byte| *byte == b'\n').next()?.trim_ascii();
        (!line.is_empty() && line.iter().all(u8::is_ascii_graphic)).then(|| Self(line.to_vec()))
    }

    /// Whether it is in the value of `Authorization` (RFC 6750, 2.1).
    pub fn is_in(&self, authorization: Option<&[u8]>) -> bool {
        let Some((scheme, rest)) = authorization.and_then(|value| value.split_at_checked(6)) else { return false };
        let Some(given) = rest.strip_prefix(b" ") else { return false };
        scheme.eq_ignore_ascii_case(b"bearer") && is_same(&self.0, given.trim_ascii())
    }
}

/// Compares in a time that depends on nothing but the length that was given.
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
        let head = b"GET /metrics?x=1 HTTP/1.1\r\nhost: a\r\nACCEPT: text/plain\r\nAccept: */*\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!((request.method, request.path, &*request.accept), (Method::Get, "/metrics", "text/plain,*/*"));
        let status = |head: &[u8]| Request::parse(head).unwrap_err();
        assert_eq!(status(b"\r\n\r\n"), Refusal::Bad);
        assert_eq!(status(b"GET / HTTP/9.9\r\n\r\n"), Refusal::Bad);
        assert_eq!(status(b"GET / HTTP/1.1\r\n\xff\xff: \r\n\r\n"), Refusal::Bad);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(status(many.as_bytes()), Refusal::TooLong);
        assert!(is_garbage(b"\x16\x03\x01") && is_garbage(&[b'A'; 100]) && !is_garbage(b"") && !is_garbage(b"GET /"));
    }

    #[test]
    fn a_token_is_the_whole_word() {
        let token = Token::of(b"s3cret\nmore").unwrap();
        for (value, is_it) in [
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
            assert_eq!(token.is_in(Some(value)), is_it, "{}", String::from_utf8_lossy(value));
        }
        assert!(!token.is_in(None) && Token::of(b"\n").is_none() && Token::of(b"a b").is_none());
    }
}
