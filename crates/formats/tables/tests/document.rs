//! Tests that `docs/export.md` describes the tables as they are.

use std::path::Path;

/// The document after this line is generated from the schemas.
const MARK: &str = "by its test: UPDATE_EXPECT=1 cargo test -p tables -->\n";

#[test]
fn the_document_has_each_table_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/export.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, there) = text.split_once(MARK).unwrap();
    let tables: Vec<String> = tables::TABLES
        .iter()
        .map(|table| format!("\n{}", tables::documented(table)))
        .collect();
    let tables = tables.concat();
    assert!(head.contains(&format!("version {} of the schema", tables::VERSION)));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, [head, MARK, &tables].concat()).unwrap();
    } else {
        assert!(
            there == tables,
            "docs/export.md is old: UPDATE_EXPECT=1 cargo test -p tables"
        );
    }
}

#[test]
fn columns_have_names_that_all_engines_take() {
    /// SQL keywords that need quotes in some engines.
    const RESERVED: [&str; 12] = [
        "by", "where", "order", "group", "from", "to", "end", "start", "time", "date", "hour",
        "host",
    ];
    for table in tables::TABLES {
        for column in table.columns {
            let name = column.field.name;
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert!(!RESERVED.contains(&name), "{name}");
            assert_eq!(
                name.ends_with("_ns"),
                column.unit.starts_with("ns"),
                "{name} is in {:?}",
                column.unit
            );
            assert!(
                !column.about.contains('|') && column.about.ends_with('.'),
                "{name}: {}",
                column.about
            );
        }
        let has = |key: &&str| table.columns.iter().any(|column| column.field.name == *key);
        assert!(
            !table.sorted_by.is_empty() && table.sorted_by.iter().all(has),
            "{}",
            table.name
        );
    }
}
