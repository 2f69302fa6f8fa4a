//! ELF files built byte by byte: code, data, and sections of any content (System V gABI, chapter
//! 4).

/// Section type `SHT_NOTE`.
pub(crate) const NOTE: u32 = 7;
/// Address at which the code is loaded.
pub(crate) const CODE: u64 = 0x1000;
/// Size of the code in bytes.
const CODE_BYTES: usize = 0x1000;
/// File offset of the first part, after the ELF header and one program header.
const PARTS: usize = 64 + 56;

/// Section: its name, type and flags, and its bytes, or its share of the previous section that has
/// bytes.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// This many leading bytes of the last section with bytes of its own.
    Shared(u64),
}

impl Section {
    pub(crate) fn new(name: &'static str, kind: u32, bytes: Vec<u8>) -> Self {
        Self {
            name,
            kind,
            flags: 0,
            content: Content::Bytes(bytes),
        }
    }
}

/// Returns a shared object with code that does nothing, and these sections.
pub(crate) fn file(sections: &[Section]) -> Vec<u8> {
    let mut body = vec![0x90; CODE_BYTES];
    let mut names = vec![0];
    let mut headers = vec![[0_u64; 8]];
    let mut last = 0;
    for Section {
        name,
        kind,
        flags,
        content,
    } in sections
    {
        let at = names.len();
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        let size = match content {
            Content::Bytes(bytes) => {
                body.resize(body.len().next_multiple_of(8), 0);
                last = PARTS + body.len();
                body.extend_from_slice(bytes);
                bytes.len() as u64
            }
            Content::Shared(size) => *size,
        };
        headers.push([
            at as u64 | u64::from(*kind) << 32,
            *flags,
            0,
            last as u64,
            size,
            0,
            4,
            0,
        ]);
    }
    let at = names.len() as u64;
    names.extend_from_slice(b".shstrtab\0");
    headers.push([
        at | 3 << 32,
        0,
        0,
        (PARTS + body.len()) as u64,
        names.len() as u64,
        0,
        1,
        0,
    ]);
    body.extend_from_slice(&names);
    body.resize(body.len().next_multiple_of(8), 0);
    let mut file = file_header(headers.len() as u16, body.len());
    file.extend_from_slice(&body);
    for value in headers.iter().flatten() {
        file.extend_from_slice(&value.to_le_bytes());
    }
    file
}

/// Returns a USDT note of the provider `p` (systemtap wiki, UserSpaceProbeImplementation).
pub(crate) fn note(name: &str, args: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for word in [CODE, 0, 0] {
        text.extend_from_slice(&word.to_le_bytes());
    }
    text.extend_from_slice(format!("p\0{name}\0{args}\0").as_bytes());
    let mut note = Vec::new();
    for word in [8, text.len() as u32, 3] {
        note.extend_from_slice(&word.to_le_bytes());
    }
    note.extend_from_slice(b"stapsdt\0");
    note.extend_from_slice(&text);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// Returns the header of a file with this number of section headers after its body, and the header
/// of its only segment.
fn file_header(headers: u16, body_size: usize) -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "aarch64") {
        183
    } else {
        62
    };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, value: u16| file.extend_from_slice(&value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u64| file.extend_from_slice(&value.to_le_bytes());
    half(&mut file, 3);
    half(&mut file, machine);
    file.extend_from_slice(&1_u32.to_le_bytes());
    for value in [CODE, 64, (PARTS + body_size) as u64] {
        word(&mut file, value);
    }
    file.extend_from_slice(&[0; 4]);
    for value in [64, 56, 1, 64, headers, headers - 1] {
        half(&mut file, value);
    }
    // One segment: PT_LOAD, readable and executable.
    let code = CODE_BYTES as u64;
    for value in [1 | 5 << 32, PARTS as u64, CODE, CODE, code, code, 0x1000] {
        word(&mut file, value);
    }
    file
}
