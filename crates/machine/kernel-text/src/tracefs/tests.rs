//! Formats as the kernel writes them, and broken ones.

use super::*;

const SYS_ENTER: &str = "\
name: sys_enter
ID: 443
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;
\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;

print fmt: \"NR %ld (%lx)\", REC->id, REC->args[0]
";

fn field(line: &str) -> Result<Field, &'static str> {
    field::parse(line)
}

#[test]
fn reads_a_whole_format() {
    let format = TracepointFormat::parse(SYS_ENTER).unwrap();
    assert_eq!(
        (format.name.as_str(), format.id, format.fields.len()),
        ("sys_enter", 443, 4)
    );
    let own: Vec<&str> = format
        .own_fields()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(own, ["id", "args"]);
    let id = format.field("id").unwrap();
    assert_eq!(
        (id.offset, id.size, id.signed, id.array),
        (8, 8, true, None)
    );
    let args = format.field("args").unwrap();
    assert_eq!(
        (args.type_text.as_str(), args.array, args.element_size()),
        ("unsigned long", Some(Array::Count(6)), 8)
    );
    assert!(format.print.starts_with("\"NR %ld"));
    assert_eq!(format.field("none"), None);
}

type Declaration = (
    &'static str,
    &'static str,
    &'static str,
    Option<Array>,
    Location,
);

/// Declarations of fields: the text, its type, name and array, and the place of the value.
const DECLARATIONS: [Declaration; 9] = [
    (
        "char comm[16]",
        "char",
        "comm",
        Some(Array::Count(16)),
        Location::Inline,
    ),
    (
        "char comm[TASK_COMM_LEN]",
        "char",
        "comm",
        Some(Array::Unstated),
        Location::Inline,
    ),
    (
        "__data_loc char[] cmd",
        "char",
        "cmd",
        Some(Array::Unstated),
        Location::DataLoc,
    ),
    (
        "__rel_loc u8[] data",
        "u8",
        "data",
        Some(Array::Unstated),
        Location::RelLoc,
    ),
    (
        "const char * name",
        "const char *",
        "name",
        None,
        Location::Inline,
    ),
    ("void *ptr", "void *", "ptr", None, Location::Inline),
    (
        "struct sock * sk",
        "struct sock *",
        "sk",
        None,
        Location::Inline,
    ),
    (
        "enum mode mode",
        "enum mode",
        "mode",
        None,
        Location::Inline,
    ),
    (
        "__u8 daddr_v6[16]",
        "__u8",
        "daddr_v6",
        Some(Array::Count(16)),
        Location::Inline,
    ),
];

#[test]
fn declarations() {
    for (declaration, kind, name, array, location) in DECLARATIONS {
        let field = field(&format!(
            "field:{declaration};\toffset:8;\tsize:4;\tsigned:0;"
        ))
        .unwrap();
        assert_eq!(
            (&*field.type_text, &*field.name, field.array, field.location),
            (kind, name, array, location)
        );
    }
}

#[test]
fn says_what_is_wrong() {
    let check = |text: &str, line, expected| {
        assert_eq!(
            TracepointFormat::parse(text),
            Err(TextError::TracepointFormat { line, expected }),
            "{text:?}"
        );
    };
    check("", 1, "a line name:");
    check("name: x\n", 2, "a line ID:");
    check("name: x\nID: y\n", 2, "a number after ID:");
    check(
        "name: x\nID: 1\n\tfield:int a; size:4;\n",
        3,
        "offset: and a number",
    );
    check(
        "name: x\nID: 1\n\tfield:int a; offset:4;\n",
        3,
        "size: and a number",
    );
    check(
        "name: x\nID: 1\n\tfield:int; offset:4; size:4;\n",
        3,
        "a type and a name",
    );
    check(
        "name: x\nID: 1\n\tfield:int\n",
        3,
        "a declaration that ends with ;",
    );
    check("name: x\nID: 1\n\tfields:int a;\n", 3, "field:");
}
