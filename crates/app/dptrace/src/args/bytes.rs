//! Numbers of bytes, as users type them.

use errors::usage;

/// Checks the size of a ring buffer (`--buffer`).
///
/// # Errors
///
/// Fails if it is not a power of two: the kernel accepts no other size.
pub(crate) fn check_buffer(mib: u32) -> anyhow::Result<()> {
    if mib.is_power_of_two() {
        return Ok(());
    }
    Err(usage(format!("--buffer {mib} is not a power of two")))
}

/// Parses a number of bytes: `500M`, `2G`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const MIN_BYTES: u64 = 1 << 20;
    let (digits, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("expected a number of bytes such as 500M or 2G".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected a number of bytes such as 500M or 2G".to_owned())?;
    let bytes = number
        .checked_mul(1 << shift)
        .ok_or_else(|| "that is more than any disk has".to_owned())?;
    if bytes < MIN_BYTES {
        Err("expected at least 1M".to_owned())
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (text, expected) in [
            ("1048576", 1 << 20),
            ("500M", 500 << 20),
            ("2G", 2 << 30),
            ("3MiB", 3 << 20),
            ("1GB", 1 << 30),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "5", "5X", "-1M", "99999999999999T", "1.5G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
