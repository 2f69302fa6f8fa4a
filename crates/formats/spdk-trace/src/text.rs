//! Strings in arrays of a fixed size.

/// Returns the text up to the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}
