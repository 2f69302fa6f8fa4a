//! Comparison of two outputs of one command: words must match, numbers and text in brackets need
//! not.

/// Returns whether a line like the shown one was printed: the same words, another row of a table,
/// or two thirds of its words in the same order. A terminal may wrap a line elsewhere, so two lines
/// are also compared as one.
pub(crate) fn fits(shown: &str, printed: &[&str]) -> bool {
    let wanted = words(shown);
    let texts: Vec<&String> = wanted.iter().filter(|word| is_text(word)).collect();
    let alike = |line: &str| {
        let words = words(line);
        if words == wanted || is_row(&wanted) && is_row(&words) && wanted.len() == words.len() {
            return true;
        }
        let common = in_both(
            &texts,
            &words
                .iter()
                .filter(|word| is_text(word))
                .collect::<Vec<_>>(),
        );
        common > 0 && common * 3 >= texts.len() * 2
    };
    printed.iter().any(|line| alike(line)) || printed.windows(2).any(|two| alike(&two.join(" ")))
}

/// Returns whether the line is a row of a table: a name and three numbers or more. Names differ
/// from run to run.
fn is_row(words: &[String]) -> bool {
    words.len() > 3 && words.iter().skip(1).all(|word| word == "0")
}

fn is_text(word: &str) -> bool {
    word.contains(char::is_alphabetic)
}

/// Returns the words of a line. A word with a digit becomes `0`; units, bars and text in brackets
/// are dropped.
fn words(line: &str) -> Vec<String> {
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut inside = false;
    for c in line.chars() {
        match c {
            '|' => inside = !inside,
            '[' => depth += 1,
            // A histogram's row begins with `[8, 16)`.
            ']' | ')' if depth > 0 => depth -= 1,
            _ if depth == 0 && !inside => text.push(c),
            _ => {}
        }
    }
    let is_bar = |word: &str| word.chars().all(|c| ('\u{2580}'..='\u{259f}').contains(&c));
    let words = text
        .split([' ', ',', ';', '(', ')', ']', ':', '=', '{', '}', '\t'])
        .filter(|word| !word.is_empty());
    let words =
        words.filter(|word| !is_bar(word) && !["ns", "us", "ms", "s", "%", "..."].contains(word));
    let words = words.map(|word| {
        if word.contains(|c: char| c.is_ascii_digit()) {
            "0"
        } else {
            word
        }
    });
    words.map(str::to_owned).collect()
}

/// Returns the number of words that two lines have in common in order: the length of the longest
/// common subsequence.
fn in_both(a: &[&String], b: &[&String]) -> usize {
    let mut best = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = best[j + 1];
            best[j + 1] = if word == other {
                diagonal + 1
            } else {
                above.max(best[j])
            };
            diagonal = above;
        }
    }
    best[b.len()]
}

#[test]
fn lines_of_one_kind_fit() {
    let alike = [
        ("@[sshd]: 12", "@[cargo, a b]: 4"),
        ("[8, 16)        331 |@@@@@@  |", "[1K, 2K)    1 |@@ |"),
        (
            "  user code     528 ms   26.41 ██████▋",
            "  user code      1.00 s  100.00",
        ),
        (
            "    ran instead: yes [26712]  448 ms   22.41 █████▋",
            "    ran instead: rustc [4 processes] 3 us 0.01",
        ),
        (
            "statx     7623   0  18 ms  2420 ns",
            "pwrite64   144905   0   523 ms  3614 ns",
        ),
        ("   ProcSleep+0x314 [postgres]", "   read+0x1 [libc.so.6]"),
    ];
    for (shown, printed) in alike {
        assert!(fits(shown, &[printed]), "{shown:?} {printed:?}");
    }
    assert!(fits(
        "longest wait 3 ms; own code 4%",
        &["yes 4 ms; longest", "wait 400 ms; own code"]
    ));
    let others = [
        ("@[sshd]: 12", "Attached 1 probe"),
        (
            "  user code     528 ms   26.41",
            "  system calls, on the CPU    2.57 ms    0.13",
        ),
        ("statx     7623   0  18 ms  2420 ns", "pwrite64   144905"),
        ("NAME   COUNT ERRORS TOTAL MEAN", "NAME  VECT_NR COUNT"),
        ("[8, 16)        331 |@@@@@@  |", ""),
        ("@bytes:", "@us:"),
        ("Attached 1 probe", ""),
    ];
    for (shown, printed) in others {
        assert!(!fits(shown, &[printed]), "{shown:?} {printed:?}");
    }
}
