//! Numbers as users type them.

/// Returns whether the word has only decimal digits: the number of a process, a queue, a port.
pub fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_digits() {
        assert!(["0", "4711", "00"].iter().all(|word| is_digits(word)));
        let others = ["", "-1", "+1", "1.5", "0x1", "1 ", "nginx"];
        assert!(!others.iter().any(|word| is_digits(word)));
    }
}
