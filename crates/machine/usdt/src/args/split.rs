//! Cuts an argument string into its arguments, and an argument into its size and its operand.

use super::ArgType;

/// Splits a string into arguments: pieces between blanks, where blanks within brackets do not count
/// (`[sp, 8]`).
///
/// Once an argument has a size, a piece without one that follows belongs to it: `<sys/sdt.h>`
/// writes a size before every argument, and compilers with Intel syntax put blanks in their
/// operands (`-4@DWORD PTR [rbp-20]`). Taking such a piece for an argument of its own would give
/// all further ones a wrong number.
pub(super) fn arguments(text: &str) -> Vec<&str> {
    let pieces = pieces(text);
    let sized = pieces
        .first()
        .is_some_and(|&(start, end)| size(&text[start..end]).is_some());
    let mut arguments: Vec<(usize, usize)> = Vec::new();
    for (start, end) in pieces {
        match arguments.last_mut() {
            Some(last) if sized && size(&text[start..end]).is_none() => last.1 = end,
            _ => arguments.push((start, end)),
        }
    }
    arguments
        .into_iter()
        .map(|(start, end)| &text[start..end])
        .collect()
}

/// Returns the start and end of each piece.
fn pieces(text: &str) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut depth = 0usize;
    let mut start = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if byte.is_ascii_whitespace() && depth == 0 {
            if let Some(start) = start.take() {
                pieces.push((start, at));
            }
        } else {
            start.get_or_insert(at);
        }
    }
    pieces.extend(start.map(|start| (start, text.len())));
    pieces
}

/// Splits an argument into the type before the `@` and the rest. `None` if there is no `@`, or no
/// size before it.
pub(super) fn size(argument: &str) -> Option<(ArgType, &str)> {
    let (size, operand) = argument.split_once('@')?;
    let (signed, size) = match size.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, size),
    };
    let (float, size) = match size.strip_suffix('f') {
        Some(size) => (true, size),
        None => (false, size),
    };
    if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number too large for 32 bits is as unreadable as the largest that fits.
    let size = size.parse().unwrap_or(u32::MAX);
    Some((
        ArgType {
            size,
            signed,
            float,
        },
        operand,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_brackets_do_not_separate() {
        assert_eq!(
            arguments("8@x0 -4@[sp, 8]  4@[x1, x2, lsl 3]"),
            ["8@x0", "-4@[sp, 8]", "4@[x1, x2, lsl 3]"]
        );
        assert_eq!(
            arguments(" 8@-8( %rbp , %rax , 8 ) "),
            ["8@-8( %rbp , %rax , 8 )"]
        );
        assert_eq!(arguments(""), [""; 0]);
        assert_eq!(arguments("%eax $3"), ["%eax", "$3"]);
    }

    #[test]
    fn pieces_without_a_size_belong_to_the_one_before() {
        assert_eq!(
            arguments("-4@DWORD PTR [rbp-20] 8@rax"),
            ["-4@DWORD PTR [rbp-20]", "8@rax"]
        );
        assert_eq!(arguments("%eax -4@%ebx"), ["%eax", "-4@%ebx"]);
    }

    #[test]
    fn sizes() {
        let ty = |size, signed, float| ArgType {
            size,
            signed,
            float,
        };
        assert_eq!(size("-4@x"), Some((ty(4, true, false), "x")));
        assert_eq!(size("8f@%xmm0"), Some((ty(8, false, true), "%xmm0")));
        assert_eq!(size("-8f@y"), Some((ty(8, true, true), "y")));
        assert_eq!(
            size("99999999999@y"),
            Some((ty(u32::MAX, false, false), "y"))
        );
        assert_eq!(
            size("8@gi@GOTPCREL(%rip)"),
            Some((ty(8, false, false), "gi@GOTPCREL(%rip)"))
        );
        for wrong in [
            "%eax",
            "@%eax",
            "-@%eax",
            "f@x",
            "gi@GOTPCREL(%rip)",
            "4 @x",
        ] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
