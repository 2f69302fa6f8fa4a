//! Built-in layouts of SPDK's structs, for expressions over programs without debug information.

use std::collections::BTreeSet;
use std::path::PathBuf;

use live_memory::{EvalError, Fault, Mentions};
use objects::layouts::{SpdkVersion, structs, versions};
use typeinfo::{NameKind, TypeError, TypeStore};

use super::version_of;

/// Built-in layouts that expressions use.
#[derive(Debug)]
pub struct StructLayouts {
    version: Option<SpdkVersion>,
    /// Origin of the version, in words; `None` if the user named it or no layout is needed.
    pub source: Option<String>,
    /// Set if the expressions use any SPDK struct.
    is_asked: bool,
}

/// Adds the structs that the expressions name and that neither the program's debug information nor
/// the user defines, with those that their members refer to.
///
/// # Errors
///
/// Fails if the process's memory or files cannot be read to find its version of SPDK.
pub fn add(
    types: &mut TypeStore<'_>,
    mentions: &Mentions,
    named: Option<SpdkVersion>,
    (pid, debug_dirs): (u32, &[PathBuf]),
) -> anyhow::Result<StructLayouts> {
    let is_missing =
        |types: &TypeStore<'_>, name: &str| matches!(types.find(NameKind::Struct, name), Ok(None));
    let all = known(None);
    let wanted = mentions
        .types
        .iter()
        .filter(|(kind, name)| *kind == NameKind::Struct && is_missing(types, name));
    let is_wanted = wanted
        .map(|(_, name)| name)
        .any(|name| all.contains(name.as_str()));
    let mut layout = StructLayouts {
        version: named,
        source: None,
        is_asked: named.is_some() || is_wanted,
    };
    if named.is_none() && is_wanted {
        let found = version_of(pid, debug_dirs)?;
        layout.version = found.map(|(version, _)| version);
        layout.source =
            found.map(|(version, how)| format!("the layout of SPDK {version}, because {how}"));
    }
    if let Some(version) = layout.version {
        let missing = structs(version).filter(|(name, _)| is_missing(types, name));
        let text: Vec<&str> = missing.map(|(_, text)| text).collect();
        // The built-in layouts are tested: if they clash with the user's own types, those take
        // precedence.
        drop(live_memory::define_types(types, &text.join("\n")));
    }
    Ok(layout)
}

/// Returns the structs that have a layout in this version, or in any.
fn known(version: Option<SpdkVersion>) -> BTreeSet<&'static str> {
    let versions = version.map_or_else(versions, |version| vec![version]);
    versions
        .into_iter()
        .flat_map(structs)
        .map(|(name, _)| name)
        .collect()
}

impl StructLayouts {
    /// Adds the known names to an error about a missing struct or member.
    pub fn explain(&self, error: EvalError) -> EvalError {
        let Fault::Type(fault) = &error.fault else {
            return error;
        };
        match fault {
            TypeError::NoName { name, .. } if self.is_asked || name.starts_with("spdk_") => {
                let names: Vec<&str> = known(self.version).into_iter().collect();
                let names = names.join(", ");
                match self.version {
                    Some(version) => error.with_hint(format!(
                        "layouts of SPDK {version} are built in for {names}"
                    )),
                    None => error.with_hint(format!(
                        "layouts are built in for {names}, but this program's SPDK version is \
                         unknown: name it (--layout 24.09)"
                    )),
                }
            }
            TypeError::NoMember { name, .. } if self.is_layout(name) => {
                let hint = "built-in layouts have only some members; --types FILE defines a struct \
                            as C has it";
                error.with_hint(hint)
            }
            _ => error,
        }
    }

    fn is_layout(&self, name: &str) -> bool {
        self.version.is_some()
            && known(self.version).contains(name.strip_prefix("struct ").unwrap_or(name))
    }
}
