//! ELF files with debug information, made as an input says: nearly all are read far, and what the input repeats is repeated
//! many times. Formats: DWARF 4 and 5, the gABI, and systemtap's notes.

/// The input, taken from the front; zeros behind its end.
pub struct Script<'a>(pub &'a [u8]);

/// How often anything is repeated at most: enough that what is done for each pair of two would be seen.
const MAX_REPEATS: usize = 2048;

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Mostly a small number, sometimes the largest.
    fn count(&mut self) -> usize {
        let byte = usize::from(self.byte());
        if byte < 0xf0 {
            byte % 8
        } else {
            MAX_REPEATS >> (byte - 0xf0)
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = usize::from(self.byte() % 64).min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes.to_vec()
    }

    /// Bytes of the input, many times over.
    fn repeated(&mut self) -> Vec<u8> {
        let bytes = self.bytes();
        bytes.repeat(self.count())
    }
}

/// Abbreviations: a unit, a skeleton of one whose rest is in another file (`DW_AT_dwo_name`, `DW_AT_comp_dir`), functions,
/// functions that are inlined with children and without, a struct, its members, a type's other name, a pointer.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0x1b, 0x0e, 0, 0, //
    2, 0x11, 0, 0x76, 0x0e, 0x1b, 0x0e, 0xb1, 0x42, 0x07, 0x55, 0x17, 0, 0, //
    3, 0x2e, 1, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    4, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    5, 0x1d, 0, 0x31, 0x13, 0x55, 0x17, 0x58, 0x0b, 0x59, 0x0b, 0, 0, //
    6, 0x13, 1, 0x03, 0x0e, 0x0b, 0x0b, 0, 0, //
    7, 0x0d, 0, 0x03, 0x0e, 0x49, 0x13, 0x38, 0x0b, 0, 0, //
    8, 0x16, 0, 0x03, 0x0e, 0x49, 0x13, 0, 0, //
    9, 0x0f, 0, 0x49, 0x13, 0, 0, //
];
/// How many bytes an entry of each has, after its number.
const LENGTHS: [usize; 10] = [0, 20, 20, 16, 16, 10, 5, 9, 8, 4];

fn entry(script: &mut Script<'_>) -> Vec<u8> {
    let number = script.byte() % 12;
    let Some(length) = LENGTHS.get(usize::from(number)) else {
        return script.bytes();
    };
    let mut entry = vec![number];
    while entry.len() <= *length {
        // Addresses are often the code's, and references and offsets small.
        let part = script.byte();
        match part {
            0..0x40 => entry.extend_from_slice(&CODE.to_le_bytes()),
            0x40..0xc0 => entry.extend_from_slice(&u32::from(part - 0x40).to_le_bytes()),
            _ => entry.extend_from_slice(&script.word().to_le_bytes()),
        }
    }
    entry.truncate(length + 1);
    entry
}

/// Where the code is loaded.
pub const CODE: u64 = 0x1000;

fn with_length(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], body].concat()
}

fn units(script: &mut Script<'_>) -> Vec<u8> {
    let mut info = Vec::new();
    for _ in 0..1 + script.byte() % 3 {
        let mut body = [
            &[4, 0][..],
            &u32::from(script.byte() / 32).to_le_bytes(),
            &[8, 1],
        ]
        .concat();
        body.extend_from_slice(
            &[
                &CODE.to_le_bytes()[..],
                &[0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ]
            .concat(),
        );
        for _ in 0..script.byte() % 16 {
            let entry = entry(script);
            body.extend(entry.repeat(script.count()));
            body.extend(vec![0; usize::from(script.byte() % 4)]);
        }
        let unit = with_length(&body);
        info.extend(unit.repeat(if script.byte() > 0xf0 {
            MAX_REPEATS / 8
        } else {
            1
        }));
    }
    info
}

fn lines(script: &mut Script<'_>) -> Vec<u8> {
    let folders = script.repeated();
    let files = [script.repeated(), vec![0]].concat();
    let head = [
        &[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1][..],
        &folders,
        &[0],
        &files,
        &[0],
    ]
    .concat();
    let body = [
        &[4, 0][..],
        &with_length(&head),
        &[0, 9, 2],
        &CODE.to_le_bytes(),
        &script.repeated(),
    ]
    .concat();
    with_length(&body)
}

fn frames(script: &mut Script<'_>) -> Vec<u8> {
    let common = [
        &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b][..],
        &script.bytes(),
    ]
    .concat();
    let mut all = with_length(&common);
    for number in 0..1 + u32::from(script.byte() % 8) {
        let at = all.len() as u32;
        let begin = (CODE as u32 + number * 16).wrapping_sub(at + 8);
        let mut body = [
            (at + 4).to_le_bytes(),
            begin.to_le_bytes(),
            16_u32.to_le_bytes(),
        ]
        .concat();
        body.push(0);
        for _ in 0..script.byte() % 4 {
            // DW_CFA_def_cfa_expression, DW_CFA_expression and DW_CFA_val_expression of a register; or anything.
            let expression = script.bytes();
            let head: &[u8] =
                [&[0x0f][..], &[0x10, 6], &[0x16, 16], &[]][usize::from(script.byte() % 4)];
            body.extend_from_slice(head);
            if !head.is_empty() {
                body.push(expression.len() as u8);
            }
            body.extend(expression.repeat(if head.is_empty() { script.count() } else { 1 }));
        }
        all.extend(with_length(&body));
    }
    all
}

fn notes(script: &mut Script<'_>) -> Vec<u8> {
    let mut notes = Vec::new();
    for _ in 0..script.byte() % 4 {
        let text = [
            &CODE.to_le_bytes()[..],
            &[0; 16],
            b"p\0",
            &script.bytes(),
            b"\0",
            &script.bytes(),
            b"\0",
        ]
        .concat();
        let mut note = [8, text.len() as u32, 3]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>();
        note.extend_from_slice(b"stapsdt\0");
        note.extend_from_slice(&text);
        note.resize(note.len().next_multiple_of(4), 0);
        notes.extend(note.repeat(script.count()));
    }
    notes
}

/// A compression header and a stream: Zstandard blocks of one repeated byte or of bytes as they are, or anything.
fn compressed(script: &mut Script<'_>, plain: &[u8]) -> Vec<u8> {
    let (kind, claim) = (script.byte(), script.byte());
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x50];
    let block = |stream: &mut Vec<u8>, kind: u32, length: usize, bytes: &[u8]| {
        stream.extend_from_slice(&((length as u32) << 3 | kind << 1).to_le_bytes()[..3]);
        stream.extend_from_slice(bytes);
    };
    match kind % 4 {
        0 => plain
            .chunks(60_000)
            .for_each(|part| block(&mut stream, 0, part.len(), part)),
        1 => (0..script.count()).for_each(|_| block(&mut stream, 1, 128 << 10, &[kind])),
        2 => {
            let content = script.repeated();
            block(&mut stream, 2, content.len(), &content);
        }
        _ => stream.extend(script.repeated()),
    }
    stream.extend_from_slice(&[1, 0, 0]);
    let size = match claim {
        0..0x80 => plain.len() as u64,
        0x80..0xc0 => u64::from(script.word()),
        _ => stream.len() as u64 * 60,
    };
    let kind = if claim % 16 == 15 { 1_u32 } else { 2 };
    [
        &kind.to_le_bytes()[..],
        &[0; 4],
        &size.to_le_bytes(),
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &stream,
    ]
    .concat()
}

/// The whole file.
pub fn elf(script: &mut Script<'_>) -> Vec<u8> {
    let info = units(script);
    let abbreviations = [ABBREVIATIONS, &script.repeated(), &[0]].concat();
    let strings = [script.repeated(), vec![0]].concat();
    let debug = [
        (".debug_info", info),
        (".debug_abbrev", abbreviations),
        (".debug_str", strings),
        (".debug_line", lines(script)),
        (".debug_ranges", [script.repeated(), vec![0; 16]].concat()),
    ];
    let mut sections: Vec<(&str, u32, u64, Vec<u8>)> = Vec::new();
    for (name, plain) in debug {
        let flags = if script.byte() > 0xe0 { 0x800 } else { 0 };
        let bytes = if flags > 0 {
            compressed(script, &plain)
        } else {
            plain
        };
        sections.push((name, 1, flags, bytes));
    }
    sections.push((".eh_frame", 1, 0, frames(script)));
    sections.push((".note.stapsdt", 7, 0, notes(script)));
    sections.push((".gnu_debuglink", 1, 0, script.bytes()));
    let copies = script.count();
    write(&sections, copies)
}

/// The file of these sections, with more headers for the notes.
fn write(sections: &[(&str, u32, u64, Vec<u8>)], copies: usize) -> Vec<u8> {
    const PARTS: usize = 64 + 56;
    let (mut body, mut names, mut headers) = (vec![0x90; 4096], vec![0], vec![[0_u64; 8]]);
    for (name, kind, flags, bytes) in sections {
        body.resize(body.len().next_multiple_of(8), 0);
        let at = (PARTS + body.len()) as u64;
        let address = if *name == ".eh_frame" { 0x4000 } else { 0 };
        headers.push([
            names.len() as u64 | u64::from(*kind) << 32,
            *flags,
            address,
            at,
            bytes.len() as u64,
            0,
            4,
            0,
        ]);
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        body.extend_from_slice(bytes);
    }
    let notes = headers.iter().copied().find(|header| header[0] >> 32 == 7);
    headers.extend(notes.into_iter().cycle().take(copies));
    headers.push([
        names.len() as u64 | 3 << 32,
        0,
        0,
        (PARTS + body.len()) as u64,
        names.len() as u64 + 10,
        0,
        1,
        0,
    ]);
    names.extend_from_slice(b".shstrtab\0");
    body.extend_from_slice(&names);
    body.resize(body.len().next_multiple_of(8), 0);
    let count = headers.len() as u16;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    [CODE, 64, (PARTS + body.len()) as u64]
        .iter()
        .for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
    file.extend_from_slice(&[0; 4]);
    [64, 56, 1, 64, count, count - 1]
        .iter()
        .for_each(|half: &u16| file.extend_from_slice(&half.to_le_bytes()));
    let segment = [1 | 5 << 32, PARTS as u64, CODE, CODE, 4096, 4096, 0x1000];
    segment
        .iter()
        .for_each(|word: &u64| file.extend_from_slice(&word.to_le_bytes()));
    file.extend_from_slice(&body);
    headers
        .iter()
        .flatten()
        .for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
    file
}
