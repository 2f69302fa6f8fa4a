//! Text of strangers, made harmless for HTML, SVG and a script's data.

use std::borrow::Cow;

use text::printable;

/// Characters of a name that are shown at most.
const MOST: usize = 512;

/// For text between tags and for attributes in double quotes, of HTML and of XML. Control characters and those that turn the
/// direction of writing are shown as `\xNN`.
pub(crate) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in shown(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// As it is shown: one line, of bounded length.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let text = printable::text(text.as_bytes());
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// JSON for a `<script>` element, which ends at the first `</script` whatever the JSON says: no `<` is left in it.
pub(crate) fn script_data(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        assert_eq!(
            html("<b a='1' c=\"2\">&\u{202e}\n"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\xe2\\x80\\xae\\x0a"
        );
        assert_eq!(script_data(r#"{"a":"</script><!--&"}"#), r#"{"a":"\u003c/script\u003e\u003c!--\u0026"}"#);
        assert_eq!(shown(&"x".repeat(9_000)).chars().count(), MOST + 1);
    }
}
