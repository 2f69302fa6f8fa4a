//! Numbers and padding straight into the output buffer: a listing is mostly numbers, and `format!` is its bottleneck.

/// The widest number there is, in decimal digits.
const MAX_DIGITS: usize = 20;

/// A number's digits in a small buffer, right-aligned.
struct Digits {
    buf: [u8; MAX_DIGITS + 4],
    start: usize,
}

impl Digits {
    fn new() -> Self {
        Self { buf: [b'0'; MAX_DIGITS + 4], start: MAX_DIGITS + 4 }
    }

    fn push(&mut self, byte: u8) {
        self.start -= 1;
        self.buf[self.start] = byte;
    }

    fn number(&mut self, mut n: u64) {
        const PAIRS: [[u8; 2]; 100] = pairs();
        while n >= 100 {
            let [tens, ones] = PAIRS[(n % 100) as usize];
            n /= 100;
            self.push(ones);
            self.push(tens);
        }
        let [tens, ones] = PAIRS[n as usize];
        self.push(ones);
        if n >= 10 {
            self.push(tens);
        }
    }

    /// `thousandths` with three decimals behind a point.
    fn fixed3(&mut self, thousandths: u64) {
        let decimals = thousandths % 1000;
        for digit in [decimals % 10, decimals / 10 % 10, decimals / 100] {
            self.push(b'0' + digit as u8);
        }
        self.push(b'.');
        self.number(thousandths / 1000);
    }

    fn bytes(&self) -> &[u8] {
        &self.buf[self.start..]
    }
}

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
}

/// Appends blanks.
#[inline]
pub(crate) fn blanks(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

/// Appends a number.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, n: u64) {
    let mut digits = Digits::new();
    digits.number(n);
    out.extend_from_slice(digits.bytes());
}

/// Appends a number, right-aligned in `width` columns.
#[inline]
pub(crate) fn number_right(out: &mut Vec<u8>, n: u64, width: usize) {
    let mut digits = Digits::new();
    digits.number(n);
    right(out, digits.bytes(), width);
}

/// Appends a number with at least two digits.
#[inline]
pub(crate) fn number_two_digits(out: &mut Vec<u8>, n: u64) {
    if n < 10 {
        out.push(b'0');
    }
    number(out, n);
}

/// Appends thousandths as a number with three decimals, right-aligned in `width` columns.
#[inline]
pub(crate) fn fixed3_right(out: &mut Vec<u8>, thousandths: u64, width: usize) {
    let mut digits = Digits::new();
    digits.fixed3(thousandths);
    right(out, digits.bytes(), width);
}

/// Appends thousandths as a number with three decimals, left-aligned in `width` columns.
#[inline]
pub(crate) fn fixed3_left(out: &mut Vec<u8>, thousandths: u64, width: usize) {
    let start = out.len();
    fixed3_right(out, thousandths, 0);
    pad_to(out, start, width);
}

/// Appends a number in hexadecimal, without 0x.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, n: u64) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let nibbles = (64 - n.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..nibbles).rev().map(|i| HEX[(n >> (4 * i) & 15) as usize]));
}

fn right(out: &mut Vec<u8>, bytes: &[u8], width: usize) {
    blanks(out, width.saturating_sub(bytes.len()));
    out.extend_from_slice(bytes);
}

/// Fills up with blanks what was appended since `start`, to `width` columns. A character is a column.
#[inline]
pub(crate) fn pad_to(out: &mut Vec<u8>, start: usize, width: usize) {
    let written = &out[start..];
    if written.len() >= 4 * width {
        return;
    }
    // Bytes that begin a character; all of them in ASCII.
    let columns = written.iter().filter(|&&b| b & 0xc0 != 0x80).count();
    blanks(out, width.saturating_sub(columns));
}

/// Appends text, left-aligned in `width` columns.
#[inline]
pub(crate) fn left(out: &mut Vec<u8>, text: &[u8], width: usize) {
    let start = out.len();
    out.extend_from_slice(text);
    pad_to(out, start, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn same_as_the_standard_library() {
        for n in [0, 1, 9, 10, 99, 100, 101, 12345, 999_999, 1_000_000, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(written(|out| number(out, n)), n.to_string());
            assert_eq!(written(|out| number_right(out, n, 6)), format!("{n:6}"));
            assert_eq!(written(|out| hex(out, n)), format!("{n:x}"));
            let fixed = format!("{}.{:03}", n / 1000, n % 1000);
            assert_eq!(written(|out| fixed3_right(out, n, 16)), format!("{fixed:>16}"));
            assert_eq!(written(|out| fixed3_left(out, n, 8)), format!("{fixed:8}"));
        }
        assert_eq!(written(|out| number_two_digits(out, 7)), "07");
        assert_eq!(written(|out| left(out, "größe".as_bytes(), 7)), "größe  ");
        assert_eq!(written(|out| left(out, b"ab", 1)), "ab");
    }
}
