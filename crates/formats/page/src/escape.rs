//! Escapes untrusted text for HTML, SVG and script data.

use std::borrow::Cow;

use text::printable;

/// Limit on the shown length of a name, in characters.
const MAX_NAME_CHARS: usize = 512;

/// Escapes text between tags and in double-quoted attributes, of HTML and of XML. Control
/// characters, and those that change the writing direction, are shown as `\xNN`.
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

/// Returns the text as one line of bounded length.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let text = printable::text(text.as_bytes());
    match text.char_indices().nth(MAX_NAME_CHARS) {
        None => text,
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Escapes JSON for a `<script>` element, which would end at the first `</script` in the JSON: no
/// `<` remains.
pub(crate) fn script_data(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(
            html("<b a='1' c=\"2\">&\u{202e}\n"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\xe2\\x80\\xae\\x0a"
        );
        assert_eq!(
            script_data(r#"{"a":"</script><!--&"}"#),
            r#"{"a":"\u003c/script\u003e\u003c!--\u0026"}"#
        );
        assert_eq!(
            shown(&"x".repeat(9_000)).chars().count(),
            MAX_NAME_CHARS + 1
        );
    }
}
