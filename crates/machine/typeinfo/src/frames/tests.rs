//! Hand-made tables: a common part, and entries of given instructions.

use super::*;

/// Assumed load address of the table.
const HERE: u64 = 0x4000;
/// Length of a function in bytes.
const SPAN: u32 = 0x100;

/// Puts the length before the bytes of an entry or a common part.
fn with_length(mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(4), 0);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// Builds a table with an entry for each of these lists of instructions; the functions begin at
/// 0x1000, 0x1100, ...
fn table(entries: &[&[u8]]) -> Vec<u8> {
    // Version 1, "zR", factors 1 and -8, the return address in register 16, addresses relative to their own place.
    let common = [
        &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b][..],
        &[0x0c, 7, 8, 0x90, 1],
    ]
    .concat();
    let mut all = with_length(common);
    for (number, instructions) in entries.iter().enumerate() {
        let at = all.len();
        let function = 0x1000 + SPAN * number as u32;
        let relative = function.wrapping_sub(HERE as u32 + at as u32 + 8);
        let head = [
            (at as u32 + 4).to_le_bytes(),
            relative.to_le_bytes(),
            SPAN.to_le_bytes(),
        ]
        .concat();
        all.extend(with_length([&head[..], &[0], instructions].concat()));
    }
    all.extend([0; 4]);
    all
}

/// Builds a frame table of these bytes, with an index or without one.
fn made(data: &[u8], index: Option<&[u8]>) -> Result<FrameTable<Vec<u8>>, FrameFault> {
    let section = |data| FrameSection {
        address: HERE,
        data,
    };
    FrameTable::new(&FrameSections {
        frames: section(data),
        index: index.map(section),
        text: 0,
        got: 0,
    })
}

fn frames(data: &[u8]) -> FrameTable<Vec<u8>> {
    made(data, None).unwrap()
}

#[test]
fn entries_are_found_and_cost_their_length() {
    let mut frames = frames(&table(&[&[0x0e, 16], &[0x0a, 0x0b], &[0x42; 1000]]));
    let cost = |frames: &mut FrameTable<_>, address| frames.cost(address);
    assert_eq!(cost(&mut frames, 0x1000), Ok(20 + 16));
    assert_eq!(cost(&mut frames, 0x1150), Ok(20 + 16 + 2 * COPY_COST));
    assert_eq!(cost(&mut frames, 0x12ff), Ok(20 + 1016));
    assert_eq!(frames.index().data.len(), 12 + 3 * 8);
}

#[test]
fn expressions_that_jump_are_refused_and_others_not() {
    // DW_CFA_def_cfa_expression, its length, operations.
    let skip = [0x0f, 3, 0x2f, 0xfd, 0xff];
    let branch = [0x0f, 4, 0x31, 0x28, 0xfc, 0xff];
    let forward = [0x0f, 4, 0x2f, 1, 0, 0x96];
    // DW_CFA_expression and DW_CFA_val_expression of register 6.
    let saved = [0x10, 6, 3, 0x2f, 0xfd, 0xff];
    let value = [0x16, 6, 3, 0x2f, 0xfd, 0xff];
    // The expression that linkers write for the table of indirect calls.
    let calls = [
        0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
    ];
    let mut frames = frames(&table(&[&skip, &branch, &forward, &saved, &value, &calls]));
    for number in 0..5 {
        let found = frames.cost(0x1000 + number * 0x100);
        assert!(
            matches!(found, Err(FrameFault::Jump { .. })),
            "{number}: {found:?}"
        );
    }
    assert!(frames.cost(0x1500).is_ok());
    // A remembered answer is the same.
    assert!(frames.cost(0x1000).is_err() && frames.cost(0x1510).is_ok());
}

#[test]
fn oversized_input_is_refused_before_it_is_parsed() {
    let long = vec![0; MAX_ENTRY as usize];
    assert!(matches!(
        made(&table(&[&long]), None).unwrap_err(),
        FrameFault::Long { .. }
    ));
    // The same if the file has an index of its own, which is used as it is.
    let sound = frames(&table(&[&[0; 8]]));
    let mut frames = made(&table(&[&long]), Some(&sound.index().data)).unwrap();
    assert!(matches!(frames.cost(0x1000), Err(FrameFault::Long { .. })));
}

#[test]
fn a_broken_table_is_rejected() {
    for data in [vec![], vec![0; 3], vec![0xff; 64], vec![1; 64], table(&[])] {
        let index = [
            &[1, 0x1b, 0x03, 0x3b][..],
            &[0; 4],
            &1_u32.to_le_bytes(),
            &[0; 8],
        ]
        .concat();
        for index in [None, Some(&index[..])] {
            if let Ok(mut frames) = made(&data, index) {
                let _ = frames.cost(0x1000);
            }
        }
    }
}
