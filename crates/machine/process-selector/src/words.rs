//! Several numbers behind `-p`, each in a word of its own, as a shell makes them of `-p $(pidof nginx)`.

use std::ffi::OsString;

use text::number::is_digits;

use super::find::are_called_alike;

/// Joins the numbers behind `-p` of a command line to one word, `12,13`, if they are processes of
/// the same name. Any other number means something else, such as an argument of a script.
pub fn join_pids(words: Vec<OsString>) -> Vec<OsString> {
    join(words, are_called_alike)
}

fn join(words: Vec<OsString>, alike: impl Fn(u32, u32) -> bool) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    // Number of the process in the last word, if that is one.
    let mut process: Option<u32> = None;
    let mut words = words.into_iter();
    for word in words.by_ref() {
        if word == "--" {
            joined.push(word);
            break;
        }
        let text = word.to_str().unwrap_or_default();
        let follows_option = joined
            .last()
            .is_some_and(|last| last == "-p" || last == "--pid");
        if let (Some(first), Some(other)) = (process, number(text))
            && alike(first, other)
            && let Some(last) = joined.last_mut()
        {
            last.push(",");
            last.push(word);
            continue;
        }
        let glued = text
            .strip_prefix("--pid=")
            .or_else(|| text.strip_prefix("-p"));
        process = if follows_option {
            number(text)
        } else {
            glued.and_then(number)
        };
        joined.push(word);
    }
    joined.extend(words);
    joined
}

fn number(text: &str) -> Option<u32> {
    if is_digits(text) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_behind_the_option_are_one_word() {
        let joined = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            // All numbers below 100 have one name.
            let words = join(words, |one, other| one < 100 && other < 100);
            words
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (typed, meant) in [
            ("list -p 12 13", "list -p 12,13"),
            ("list -p 12 13 14 nvmf_*", "list -p 12,13,14 nvmf_*"),
            ("list --pid 12 13", "list --pid 12,13"),
            ("list -p12 13", "list -p12,13"),
            ("list --pid=12 13", "list --pid=12,13"),
            ("run fsync-files -p 12 500", "run fsync-files -p 12 500"),
            ("run -p 12 -e x 13", "run -p 12 -e x 13"),
            ("run 12 13", "run 12 13"),
            ("run x -- -p 12 13", "run x -- -p 12 13"),
            ("list -p nginx 13", "list -p nginx 13"),
            ("list -p", "list -p"),
        ] {
            assert_eq!(joined(typed), meant);
        }
    }
}
