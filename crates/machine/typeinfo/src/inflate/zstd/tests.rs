//! Frames of the format's own tool, hand-made frames, and damaged ones.

use std::io::Write as _;
use std::process::Stdio;

use super::*;

/// Returns bytes with much repetition and some random parts.
fn mixed(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 300);
    while bytes.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (what, count) = (state >> 60, (state >> 40 & 0xff) as usize);
        match what {
            0..=5 if bytes.len() > count + 1 => {
                let from = (state >> 20) as usize % (bytes.len() - count);
                bytes.extend_from_within(from..from + count);
            }
            6 => bytes.extend(std::iter::repeat_n((state >> 50) as u8, count * 8)),
            7..=9 => bytes.extend((0..count).map(|at| (state >> (at % 40)) as u8)),
            _ => bytes.extend(
                (0..count).map(|at| b"etaoin shrdlu.,_"[(state >> (at % 50)) as usize & 15]),
            ),
        }
    }
    bytes.truncate(len);
    bytes
}

/// Compresses bytes with the format's own tool; `None` if it is not installed.
fn compressed(bytes: &[u8], options: &[&str]) -> Option<Vec<u8>> {
    let mut tool = testkit::command("zstd");
    let tool = tool
        .args(["-q", "-c"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let Ok(mut tool) = tool.spawn() else {
        testkit::kernel::skip_if_permitted("zstd", "zstd is not installed");
        return None;
    };
    let mut input = tool.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = tool.wait_with_output().unwrap();
    feeder.join().unwrap();
    Some(output.stdout)
}

fn decoded(data: &[u8], size: usize) -> Result<Vec<u8>, MalformedStream> {
    let mut out = b"before".to_vec();
    decode(data, size, &mut out)?;
    Ok(out.split_off(6))
}

#[test]
fn output_of_the_tool_is_inflated() {
    for (round, len) in [0, 1, 3, 100, 1000, 5000, 140_000, 300_000]
        .into_iter()
        .enumerate()
    {
        for options in [
            ["-1", "--check"],
            ["-3", "--no-check"],
            ["-19", "--check"],
            ["--fast=5", "--no-check"],
        ] {
            let bytes = mixed(len, round as u64 + 1);
            let Some(data) = compressed(&bytes, &options) else {
                return;
            };
            assert!(decoded(&data, len) == Ok(bytes), "{len} {options:?}");
        }
    }
    // Machine code, with other statistics than text.
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let own = &own[..own.len().min(1 << 20)];
    let Some(data) = compressed(own, &["-9"]) else {
        return;
    };
    assert!(decoded(&data, own.len()).as_deref() == Ok(own));
}

#[test]
fn several_frames_and_skipped_ones() {
    let (Some(first), Some(second)) = (compressed(b"one", &[]), compressed(&mixed(9000, 4), &[]))
    else {
        return;
    };
    let skipped = [
        &0x184d_2a53_u32.to_le_bytes()[..],
        &3_u32.to_le_bytes(),
        b"xyz",
    ]
    .concat();
    let all = [&first[..], &skipped, &second].concat();
    assert_eq!(
        decoded(&all, 9003).unwrap(),
        [b"one".to_vec(), mixed(9000, 4)].concat()
    );
    assert!(decoded(&all[..all.len() - 1], 9003).is_err());
    assert!(decoded(&[&all[..], b"rest"].concat(), 9003).is_err());
}

/// Builds a frame of blocks: kind, length, content.
fn frame(blocks: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut frame = [&MAGIC.to_le_bytes()[..], &[0, 0x50]].concat();
    for (index, (kind, length, content)) in blocks.iter().enumerate() {
        let last = u32::from(index + 1 == blocks.len());
        frame.extend_from_slice(&(length << 3 | kind << 1 | last).to_le_bytes()[..3]);
        frame.extend_from_slice(content);
    }
    frame
}

#[test]
fn output_is_bounded_by_the_budget() {
    let bomb = frame(&vec![(1, MAX_BLOCK as u32, &b"x"[..]); 1000]);
    let mut out = Vec::new();
    assert_eq!(
        decode(&bomb, 1 << 20, &mut out),
        Err(MalformedStream("no more than it states"))
    );
    assert!(
        out.len() <= 1 << 20 && out.capacity() <= 2 << 20,
        "{} {}",
        out.len(),
        out.capacity()
    );
    assert_eq!(
        decoded(&frame(&[(1, 70, b"x"), (0, 3, b"abc")]), 73).unwrap(),
        [&[b'x'; 70][..], b"abc"].concat()
    );
}

/// A block whose only sequence repeats its literal 131,074 times; a stream of 128 KiB could do that
/// 60,000 times.
#[test]
fn a_block_gives_no_more_than_the_format_allows() {
    // One raw literal; one sequence, all three codes stated once: 1 literal, the last offset, 65,539 bytes and 16 bits more.
    let block = [1 << 3, b'x', 1, 0b0101_0100, 1, 0, 52, 0xff, 0xff, 1];
    let whole = frame(&[(2, block.len() as u32, &block)]);
    assert_eq!(
        decoded(&whole, 1 << 20),
        Err(MalformedStream("no more than it states"))
    );
    let block = [1 << 3, b'x', 1, 0b0101_0100, 1, 0, 52, 0, 0, 1];
    assert_eq!(
        decoded(&frame(&[(2, block.len() as u32, &block)]), 1 << 20).unwrap(),
        vec![b'x'; 65_540]
    );
}

#[test]
fn blocks_of_nothing_come_to_an_end() {
    let empty = frame(&vec![(0, 0, &b""[..]); FREE_BLOCKS + 1]);
    assert_eq!(
        decoded(&empty, 0),
        Err(MalformedStream("blocks of some length"))
    );
    assert_eq!(
        decoded(&frame(&vec![(0, 0, &b""[..]); FREE_BLOCKS]), 0).unwrap(),
        b""
    );
}

#[test]
fn damaged_streams_are_errors_at_most() {
    let bytes = mixed(6000, 9);
    for options in [["-1"], ["-19"]] {
        let Some(data) = compressed(&bytes, &options) else {
            return;
        };
        for cut in (0..data.len()).step_by(7) {
            let _ = decoded(&data[..cut], bytes.len());
        }
        let mut state = 1_u64;
        for _ in 0..2_000 {
            let mut data = data.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = (state >> 33) as usize % data.len();
                data[at] = (state >> 20) as u8;
            }
            if let Ok(out) = decoded(&data, bytes.len()) {
                assert!(out.len() <= bytes.len());
            }
        }
    }
}
