//! Values as JSON.

use text::json::push_string;

use super::Tree;

impl Tree {
    /// Returns the value as JSON on one line. Numbers are numbers of any size; pointers are strings
    /// (`"0x10"`), enumerators are their names if they have one, characters are numbers, and
    /// omissions are `null`. Members of anonymous structs are members of the struct around it.
    pub fn json(&self) -> String {
        let mut text = String::new();
        self.push_json(&mut text);
        text
    }

    fn push_json(&self, text: &mut String) {
        match self {
            Self::Number(value) | Self::Char(value) | Self::Enum(value, None) => {
                text.push_str(&value.to_string());
            }
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Enum(_, Some(name)) => push_string(text, name.as_bytes()),
            Self::Float(value) if value.is_finite() => text.push_str(&value.to_string()),
            Self::Float(_) | Self::Cut(_) | Self::Fault(_) => text.push_str("null"),
            Self::Pointer { address, .. } => push_string(text, format!("{address:#x}").as_bytes()),
            Self::Text(bytes, _) => push_string(text, bytes),
            Self::Bytes(bytes, _) => {
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                push_string(text, hex.concat().as_bytes());
            }
            Self::Record { .. } => {
                text.push('{');
                self.push_members(text, &mut true);
                text.push('}');
            }
            Self::Array { elements, .. } => {
                text.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        text.push_str(", ");
                    }
                    element.push_json(text);
                }
                text.push(']');
            }
        }
    }

    /// Appends the members of a struct, including those of anonymous structs.
    fn push_members(&self, text: &mut String, is_first: &mut bool) {
        let Self::Record { members, .. } = self else {
            return;
        };
        for (name, tree) in members {
            let Some(name) = name else {
                tree.push_members(text, is_first);
                continue;
            };
            if !std::mem::take(is_first) {
                text.push_str(", ");
            }
            push_string(text, name.as_bytes());
            text.push_str(": ");
            tree.push_json(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_anonymous_structs_are_the_struct_s() {
        let inner = Tree::Record {
            ty: String::new(),
            members: vec![(Some("b".into()), Tree::Text(b"\"x".into(), false))],
        };
        let members = vec![
            (Some("a".into()), Tree::Number(1)),
            (None, inner),
            (Some("c".into()), Tree::Bool(true)),
        ];
        let tree = Tree::Record {
            ty: String::new(),
            members,
        };
        assert_eq!(tree.json(), r#"{"a": 1, "b": "\"x", "c": true}"#);
        let array = Tree::Array {
            elements: vec![Tree::Enum(3, Some("FAST".into())), Tree::Cut("x".into())],
            left_out: 1,
        };
        assert_eq!(array.json(), r#"["FAST", null]"#);
    }
}
