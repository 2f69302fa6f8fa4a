//! Writes numbers and padding directly into the output buffer: a listing is mostly numbers, and
//! `format!` is its bottleneck.
//!
//! A column is built in an array of its width and appended as a whole: copying a known number of
//! bytes takes a few instructions, an unknown number takes a call.

/// Maximum number of decimal digits of a `u64`.
const MAX_DIGITS: usize = 20;

/// The digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
}

/// Writes the digits of `n` so that they end before `end`, and returns their start; `None` if they
/// don't fit.
#[inline]
fn digits_before<const N: usize>(buf: &mut [u8; N], mut end: usize, mut n: u64) -> Option<usize> {
    while n >= 100 {
        end = end.checked_sub(2)?;
        buf[end..end + 2].copy_from_slice(&PAIRS[(n % 100) as usize]);
        n /= 100;
    }
    if n >= 10 {
        end = end.checked_sub(2)?;
        buf[end..end + 2].copy_from_slice(&PAIRS[n as usize]);
    } else {
        end = end.checked_sub(1)?;
        buf[end] = b'0' + n as u8;
    }
    Some(end)
}

/// Writes `thousandths` with three decimals at the end of `buf`, and returns the start; `None` if
/// it doesn't fit.
#[inline]
fn fixed3_at_end<const N: usize>(buf: &mut [u8; N], thousandths: u64) -> Option<usize> {
    let (whole, decimals) = (thousandths / 1000, thousandths % 1000);
    let point = N.checked_sub(4)?;
    buf[point] = b'.';
    buf[point + 1] = b'0' + (decimals / 100) as u8;
    buf[point + 2..].copy_from_slice(&PAIRS[(decimals % 100) as usize]);
    digits_before(buf, point, whole)
}

/// Appends blanks.
#[inline]
pub(crate) fn blanks(out: &mut Vec<u8>, count: usize) {
    const BLANKS: [u8; 32] = [b' '; 32];
    match BLANKS.get(..count) {
        Some(few) => out.extend_from_slice(few),
        None => out.resize(out.len() + count, b' '),
    }
}

/// Appends a number.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, n: u64) {
    let mut buf = [0; MAX_DIGITS];
    // SANITY: no u64 has more than 20 digits.
    let start = digits_before(&mut buf, MAX_DIGITS, n).unwrap_or(0);
    out.extend_from_slice(&buf[start..]);
}

/// Appends a number, right-aligned in `WIDTH` columns; a wider one takes more.
#[inline]
pub(crate) fn number_right<const WIDTH: usize>(out: &mut Vec<u8>, n: u64) {
    let mut buf = [b' '; WIDTH];
    match digits_before(&mut buf, WIDTH, n) {
        Some(_) => out.extend_from_slice(&buf),
        None => number(out, n),
    }
}

/// Appends a number with at least two digits.
#[inline]
pub(crate) fn number_two_digits(out: &mut Vec<u8>, n: u64) {
    match PAIRS.get(n as usize) {
        Some(pair) => out.extend_from_slice(pair),
        None => number(out, n),
    }
}

/// Appends thousandths as a number with three decimals.
#[inline]
pub(crate) fn fixed3(out: &mut Vec<u8>, thousandths: u64) {
    let mut buf = [0; MAX_DIGITS + 1];
    // SANITY: with the point, a u64 has at most 21 bytes.
    let start = fixed3_at_end(&mut buf, thousandths).unwrap_or(0);
    out.extend_from_slice(&buf[start..]);
}

/// Appends thousandths as a number with three decimals, right-aligned in `WIDTH` columns; a wider
/// one takes more.
#[inline]
pub(crate) fn fixed3_right<const WIDTH: usize>(out: &mut Vec<u8>, thousandths: u64) {
    let mut buf = [b' '; WIDTH];
    match fixed3_at_end(&mut buf, thousandths) {
        Some(_) => out.extend_from_slice(&buf),
        None => fixed3(out, thousandths),
    }
}

/// Appends a number in hexadecimal, without 0x.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, mut n: u64) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut buf = [0; 16];
    let mut start = buf.len();
    loop {
        start -= 1;
        buf[start] = HEX[(n & 15) as usize];
        n >>= 4;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&buf[start..]);
}

/// Pads the text appended since `start` with blanks to `width` columns. A character is a column.
#[inline]
pub(crate) fn pad_to(out: &mut Vec<u8>, start: usize, width: usize) {
    let written = &out[start..];
    // No character has more than four bytes.
    if written.len() >= 4 * width {
        return;
    }
    // Count the bytes that begin a character; in ASCII all do.
    let columns = written.iter().filter(|&&b| b & 0xc0 != 0x80).count();
    blanks(out, width.saturating_sub(columns));
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
        for n in [
            0,
            1,
            9,
            10,
            99,
            100,
            101,
            999,
            1000,
            12345,
            999_999,
            1_000_000,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            assert_eq!(written(|out| number(out, n)), n.to_string());
            assert_eq!(written(|out| number_right::<6>(out, n)), format!("{n:6}"));
            assert_eq!(written(|out| number_two_digits(out, n)), format!("{n:02}"));
            assert_eq!(written(|out| hex(out, n)), format!("{n:x}"));
            let fixed = format!("{}.{:03}", n / 1000, n % 1000);
            assert_eq!(written(|out| fixed3(out, n)), fixed);
            assert_eq!(
                written(|out| fixed3_right::<16>(out, n)),
                format!("{fixed:>16}")
            );
        }
    }

    #[test]
    fn a_character_is_a_column() {
        let padded = |text: &str, width| {
            written(|out| {
                out.extend_from_slice(text.as_bytes());
                pad_to(out, 0, width);
            })
        };
        assert_eq!(padded("größe", 7), "größe  ");
        assert_eq!(padded("ab", 1), "ab");
        assert_eq!(padded("ab", 40), format!("{:40}", "ab"));
    }
}
