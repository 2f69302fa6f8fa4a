//! Shell words in a command line that is still being typed.

/// Removes quotes and backslashes from a word; a quote may still be open. Variables and commands in
/// it are not expanded.
pub fn removed(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            ('\\', None | Some('"')) => plain.extend(chars.next()),
            ('\'' | '"', None) => quote = Some(char),
            (_, Some(open)) if char == open => quote = None,
            _ => plain.push(char),
        }
    }
    plain
}

/// Replaces a leading `~` by the user's home directory.
pub fn home(word: &str) -> String {
    match (word.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::removed;

    #[test]
    fn quotes_are_removed_also_where_they_are_open() {
        for (typed, plain) in [
            ("'owner.qid>0'", "owner.qid>0"),
            ("'own", "own"),
            ("--where=\"qp", "--where=qp"),
            ("my\\ file", "my file"),
            ("\"a\\\"b'c\"", "a\"b'c"),
            ("end\\", "end"),
        ] {
            assert_eq!(removed(typed), plain, "{typed}");
        }
    }
}
