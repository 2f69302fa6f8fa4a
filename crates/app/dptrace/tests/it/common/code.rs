//! Checks that a process's code equals its file's: an attached probe is a breakpoint in it
//! (`int3`).

/// Panics if the code that a process has mapped from its program differs from the file: a
/// breakpoint was left behind.
#[track_caller]
pub(crate) fn assert_code_is_the_files(pid: u32) {
    assert_eq!(changed(pid), None);
}

/// Returns the first place where the code that a process has mapped from its program differs from
/// the file, if any.
#[track_caller]
pub(crate) fn changed(pid: u32) -> Option<String> {
    use std::os::unix::fs::FileExt as _;
    let exe = std::fs::canonicalize(format!("/proc/{pid}/exe")).expect("it lives");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("we may");
    let file = std::fs::read(&exe).expect("its program");
    let mut compared = 0;
    for line in maps
        .lines()
        .filter(|line| line.contains(" r-xp ") && line.ends_with(&exe.display().to_string()))
    {
        let mut fields = line.split_whitespace();
        let hex = |text: &str| usize::from_str_radix(text, 16).expect("hex");
        let (start, end) = fields
            .next()
            .and_then(|range| range.split_once('-'))
            .expect("a range");
        let (start, end, offset) = (hex(start), hex(end), hex(fields.nth(1).expect("an offset")));
        let mut bytes = vec![0; (end - start).min(file.len() - offset)];
        memory
            .read_exact_at(&mut bytes, start as u64)
            .expect("its memory");
        let differs = bytes.iter().zip(&file[offset..]).position(|(a, b)| a != b);
        if let Some(at) = differs {
            return Some(format!("{:#x} differs", offset + at));
        }
        compared += bytes.len();
    }
    assert!(compared > 0, "{maps}");
    None
}
