//! The envelope of all JSON that dptrace prints (docs/json.md).

use crate::printable::json_document;

/// Version of the members and their meaning. New members do not change it.
pub const VERSION: u32 = 1;

/// Returns the beginning of an object of the type: its envelope, without the closing brace.
pub fn begin(ty: &str) -> String {
    format!("{{\"version\":{VERSION},\"type\":\"{ty}\"")
}

/// Puts an object that another writer of JSON has written into the envelope, and escapes what a
/// terminal would obey in it.
pub fn document(ty: &str, object: &impl ToString) -> String {
    let object = object.to_string();
    let members = object.strip_prefix('{').unwrap_or(&object);
    let comma = if members.starts_with('}') { "" } else { "," };
    json_document(format!("{}{comma}{members}", begin(ty)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gets_its_envelope() {
        assert_eq!(document("a.b", &"{}"), "{\"version\":1,\"type\":\"a.b\"}");
        let text = document("a.b", &"{\"c\": \"\u{9b}\"}");
        assert_eq!(text, "{\"version\":1,\"type\":\"a.b\",\"c\": \"\\u009b\"}");
    }
}
