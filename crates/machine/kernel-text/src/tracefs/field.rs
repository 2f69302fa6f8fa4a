//! One field of a tracepoint's record.

/// A field of a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// Type in C, without the name and the array's length: `unsigned int`, `const char *`, `char`.
    pub type_text: String,
    /// Name.
    pub name: String,
    /// Offset in the record, in bytes.
    pub offset: u32,
    /// Length in the record, in bytes: all elements of an array, 4 for a reference.
    pub size: u32,
    /// True if it is (or its elements are) signed.
    pub signed: bool,
    /// Length of the array, if it is one.
    pub array: Option<Array>,
    /// Location of the value: here or elsewhere.
    pub location: Location,
}

/// Number of elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Array {
    /// Number in the text (`char[16]`).
    Count(u32),
    /// Number in the record (`char[]`), or a constant of the kernel's source that is not in the
    /// text.
    Unstated,
}

/// Location of a field's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// Value in the field itself.
    Inline,
    /// Value elsewhere in the record (`__data_loc`): the field has 4 bytes. Their lower 16 bits are
    /// the offset from the start of the record, the upper 16 the length in bytes.
    DataLoc,
    /// The same with the offset counted from the end of this field (`__rel_loc`, since Linux 5.17).
    RelLoc,
}

impl Field {
    /// Returns true if every tracepoint has it, at the head of its record.
    pub fn is_common(&self) -> bool {
        self.name.starts_with("common_")
    }

    /// Returns the length of one element in bytes; of the whole field if it is not an array of
    /// known length.
    pub fn element_size(&self) -> u32 {
        match self.array {
            Some(Array::Count(count)) if count > 0 => self.size / count,
            _ => self.size,
        }
    }
}

/// Parses `field:TYPE NAME;\toffset:N;\tsize:N;\tsigned:N;`; the error names the expected part.
pub(super) fn parse(line: &str) -> Result<Field, &'static str> {
    let (kind, rest) = line.split_once(':').ok_or("field:")?;
    // Before Linux 3.2 structures were marked `field special:`.
    if !matches!(kind.trim(), "field" | "field special") {
        return Err("field:");
    }
    let (declaration, rest) = rest
        .split_once(';')
        .ok_or("a declaration that ends with ;")?;
    let mut numbers = [None; 3];
    for part in rest.split(';') {
        let Some((key, value)) = part.split_once(':') else {
            continue;
        };
        let keys = ["offset", "size", "signed"];
        if let Some(at) = keys.iter().position(|known| *known == key.trim()) {
            numbers[at] = value.trim().parse().ok();
        }
    }
    let [offset, size, signed] = numbers;
    let (declaration, location) = location(declaration.trim());
    let (type_text, name, array) = split(declaration).ok_or("a type and a name")?;
    Ok(Field {
        type_text,
        name,
        offset: offset.ok_or("offset: and a number")?,
        size: size.ok_or("size: and a number")?,
        // Kernels before 2.6.32 did not say.
        signed: signed.is_some_and(|signed| signed != 0),
        array,
        location,
    })
}

fn location(declaration: &str) -> (&str, Location) {
    if let Some(rest) = declaration.strip_prefix("__data_loc ") {
        (rest, Location::DataLoc)
    } else if let Some(rest) = declaration.strip_prefix("__rel_loc ") {
        (rest, Location::RelLoc)
    } else {
        (declaration, Location::Inline)
    }
}

/// Splits the type, the name and the array's length of `char comm[16]`, or of `char[] name` as
/// references are declared.
fn split(declaration: &str) -> Option<(String, String, Option<Array>)> {
    let (before, name_array) = trailing_array(declaration);
    let name_at = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| at + last_len(before, at));
    let (kind, name) = before.split_at(name_at);
    let (kind, type_array) = trailing_array(kind.trim_end());
    if kind.is_empty() || name.is_empty() {
        return None;
    }
    Some((kind.to_owned(), name.to_owned(), name_array.or(type_array)))
}

/// Returns the number of bytes of the character at this offset.
fn last_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Cuts `[16]` off the end; returns the rest and the length.
fn trailing_array(text: &str) -> (&str, Option<Array>) {
    let Some((before, length)) = text
        .strip_suffix(']')
        .and_then(|text| text.rsplit_once('['))
    else {
        return (text, None);
    };
    (
        before.trim_end(),
        Some(length.trim().parse().map_or(Array::Unstated, Array::Count)),
    )
}
