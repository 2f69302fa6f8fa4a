//! Names as users give them: patterns with `*` and `?`, and the nearest names if none fits.

use glob::Pattern;
use thiserror::Error;

/// Limit on the bytes of a pattern.
const MAX_PATTERN: usize = 1024;
/// Number of names in a hint.
const HINTED: usize = 4;
/// Limit on the bytes of compared names: nobody mistypes longer ones.
const MAX_COMPARED: usize = 128;

/// Name pattern that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the pattern {pattern:?}: expected {expected}")]
pub struct PatternError {
    /// Pattern as it was given, cut to 128 characters.
    pub pattern: String,
    /// Description of a valid pattern.
    pub expected: &'static str,
}

/// Name, or a pattern for many: `*` stands for any text, `?` for any one character. All else stands
/// for itself, brackets too, since C++ names contain them (`operator[]`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamePattern {
    text: String,
    /// Compiled pattern; `None` if the text is a plain name.
    glob: Option<Pattern>,
}

impl NamePattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = |expected| PatternError {
            pattern: text.chars().take(MAX_COMPARED).collect(),
            expected,
        };
        if text.is_empty() || text.len() > MAX_PATTERN {
            return Err(error(
                "a name of 1 to 1024 bytes, or a pattern with * and ?",
            ));
        }
        let glob = if text.contains(['*', '?']) {
            Some(
                Pattern::new(&only_stars(text))
                    .map_err(|_| error("a name, or a pattern with * and ?"))?,
            )
        } else {
            None
        };
        Ok(Self {
            text: text.to_owned(),
            glob,
        })
    }

    /// Returns true if the name fits.
    pub fn matches(&self, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(name),
            None => self.text == name,
        }
    }

    /// Returns true if it can only fit one name.
    pub fn is_plain(&self) -> bool {
        self.glob.is_none()
    }

    /// Returns the pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Translates a pattern for the glob crate: escapes brackets, and joins runs of stars, which mean
/// directories there.
fn only_stars(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '[' | ']' => pattern.extend(['[', c, ']']),
            '*' if pattern.ends_with('*') => {}
            _ => pattern.push(c),
        }
    }
    pattern
}

/// Pattern over the probes of any provider, or of some: `NAME` or `PROVIDER:NAME`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProbePattern {
    /// Pattern of the provider; `None` means any.
    pub provider: Option<NamePattern>,
    /// Pattern of the probe's name.
    pub name: NamePattern,
}

impl ProbePattern {
    /// Parses a pattern. An empty provider (`:NAME`) means any, an empty name (`PROVIDER:`) means
    /// all.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let Some((provider, name)) = text.split_once(':') else {
            return Ok(Self {
                provider: None,
                name: NamePattern::parse(text)?,
            });
        };
        let provider = if provider.is_empty() {
            None
        } else {
            Some(NamePattern::parse(provider)?)
        };
        let name = NamePattern::parse(if name.is_empty() { "*" } else { name })?;
        Ok(Self { provider, name })
    }

    /// Returns true if a probe fits.
    pub fn matches(&self, provider: &str, name: &str) -> bool {
        self.provider
            .as_ref()
            .is_none_or(|pattern| pattern.matches(provider))
            && self.name.matches(name)
    }
}

/// Returns the names of which the wanted one may be a slip, nearest first, each once: "did you
/// mean".
///
/// A name is near if at most a third of it is mistyped, ignoring case, or if it contains the wanted
/// text.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    if wanted.is_empty() || wanted.len() > MAX_COMPARED {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((distance(&wanted, name)?, name)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(limit).map(|(_, name)| name).collect()
}

/// Returns `; did you mean A or B?` for a message about a name that does not exist, or an empty
/// text if no known name is near.
pub fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    did_you_mean_at_end(&nearest(&wanted.replace(['*', '?'], ""), known, HINTED))
}

/// First words of a hint at names, the only form of one in the whole program.
const DID_YOU_MEAN: &str = "did you mean ";

/// Returns the hint at near names, `did you mean A, B or C?`; `None` if there are none.
pub fn did_you_mean(names: &[impl AsRef<str>]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
    let or = if others.is_empty() { "" } else { " or " };
    let (others, last) = (others.join(", "), last.as_ref());
    Some(format!("{DID_YOU_MEAN}{others}{or}{last}?"))
}

/// Returns the hint as the end of a message, `; did you mean A or B?`; empty if there are no names.
pub fn did_you_mean_at_end(names: &[impl AsRef<str>]) -> String {
    did_you_mean(names).map_or_else(String::new, |hint| format!("; {hint}"))
}

/// Returns the names of a hint by [`did_you_mean`]; none if the text is another hint.
pub fn names_meant(hint: &str) -> impl Iterator<Item = &str> {
    let names = hint.strip_prefix(DID_YOU_MEAN);
    let names = names.and_then(|names| names.strip_suffix('?'));
    names
        .into_iter()
        .flat_map(|names| names.split(", "))
        .flat_map(|names| names.split(" or "))
}

/// Returns the nearest of names in groups, `GROUP:NAME`: probes of providers, tracepoints of
/// categories. Both parts are compared separately, so that a long provider does not outweigh a slip
/// in the name. Without a group, or with `*` for it, all are searched. A name without a slip is
/// near in every group.
pub fn nearest_in_groups<'a>(
    group: Option<&str>,
    name: &str,
    known: impl IntoIterator<Item = (&'a str, &'a str)>,
    limit: usize,
) -> Vec<String> {
    let plain = |text: &str| text.replace(['*', '?'], "").to_lowercase();
    let (group, name) = (
        group.map(plain).filter(|group| !group.is_empty()),
        plain(name),
    );
    if name.len() > MAX_COMPARED || name.is_empty() && group.is_none() {
        return Vec::new();
    }
    let score = |(of, known): (&'a str, &'a str)| {
        let own = if name.is_empty() {
            Some(0)
        } else {
            distance(&name, known)
        };
        let of_group = group.as_ref().map_or(Some(0), |group| distance(group, of));
        let far = (own == Some(0) && !name.is_empty()).then_some(MAX_COMPARED);
        Some((own? + of_group.or(far)?, of, known))
    };
    let mut near: Vec<_> = known.into_iter().filter_map(score).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter()
        .take(limit)
        .map(|(_, of, name)| format!("{of}:{name}"))
        .collect()
}

/// Returns the distance of the names; `None` if they are not near. A letter that was left out counts
/// half of another slip.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    if name.is_empty() || name.len() > MAX_COMPARED {
        return None;
    }
    let name = name.to_lowercase();
    let longer = wanted.len().max(name.len());
    let allowed = (longer / 3).max(1);
    let missing = longer - wanted.len();
    let slips = if wanted.len().abs_diff(name.len()) > allowed {
        usize::MAX
    } else {
        strsim::osa_distance(wanted, &name)
    };
    if slips == missing && slips <= allowed {
        Some(slips)
    } else if slips <= allowed {
        Some(2 * slips)
    } else if wanted.len() >= 3 && name.contains(wanted) {
        Some(2 * allowed + 1)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(name))
    }

    #[test]
    fn patterns_of_one_name() {
        assert!(fits("query__start", "query__start"));
        assert!(!fits("query__start", "query__start2"));
        assert!(fits("query__*", "query__start"));
        assert!(fits("*", ""));
        assert!(fits("***start", "query__start"));
        assert!(fits("a?c", "abc"));
        assert!(fits("*operator[]*", "ns::map::operator[](int)"));
        assert!(!fits("*operator[]*", "operatorx"));
        assert!(fits("a[!b]*", "a[!b]c"));
        assert!(fits("*/x", "a/b/x"));
        assert!(fits("*.hidden", ".hidden"));
    }

    #[test]
    fn patterns_over_providers() {
        let check = |pattern, provider, name| {
            ProbePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(provider, name))
        };
        assert!(check("query__start", "postgresql", "query__start"));
        assert!(check("post*:query__*", "postgresql", "query__start"));
        assert!(!check("libc:query__*", "postgresql", "query__start"));
        assert!(check("postgresql:", "postgresql", "query__start"));
        assert!(check(":query__start", "postgresql", "query__start"));
        assert!(ProbePattern::parse("").is_err());
        assert!(ProbePattern::parse(&"x".repeat(2000)).is_err());
    }

    #[test]
    fn nearest_names() {
        let names = [
            "query__start",
            "query__done",
            "query__parse__start",
            "lock__wait__start",
            "query__start",
        ];
        assert_eq!(nearest("qeury__start", names, 3), ["query__start"]);
        assert_eq!(nearest("Query_start", names, 1), ["query__start"]);
        assert_eq!(nearest("parse", names, 3), ["query__parse__start"]);
        assert_eq!(nearest("nothing_like_it_at_all", names, 3), [""; 0]);
        // Letters that were left out are likelier than others that were mistaken.
        let calls = ["bpf", "open", "openat", "iopl"].map(|name| format!("sys_enter_{name}"));
        assert_eq!(
            nearest("sys_enter_opn", calls.iter().map(String::as_str), 2),
            ["sys_enter_open", "sys_enter_openat"]
        );
        assert_eq!(nearest("", names, 3), [""; 0]);
    }

    #[test]
    fn a_hint_is_part_of_a_message() {
        let known = [
            "TCP_REQ_NEW",
            "TCP_REQ_EXECUTING",
            "RDMA_REQ_NEW",
            "SOCK_REQ_QUEUE",
        ];
        assert!(hint("tcp_req_nwe", known).starts_with("; did you mean TCP_REQ_NEW"));
        assert_eq!(hint("zzzz", known), "");
    }

    #[test]
    fn a_hint_asks_which_name_was_meant() {
        assert_eq!(did_you_mean(&[""; 0]), None);
        for (names, hint) in [
            (&["a"][..], "did you mean a?"),
            (&["a", "b"], "did you mean a or b?"),
            (&["a", "b", "c"], "did you mean a, b or c?"),
        ] {
            assert_eq!(did_you_mean(names).as_deref(), Some(hint));
            assert_eq!(names_meant(hint).collect::<Vec<_>>(), names);
        }
        assert_eq!(did_you_mean_at_end(&["a"]), "; did you mean a?");
        assert_eq!(names_meant("lines are known only for -g").count(), 0);
    }

    #[test]
    fn nearest_names_in_groups() {
        let known = [
            ("a_provider_of_a_long_name", "get"),
            ("a_provider_of_a_long_name", "put"),
            ("libc", "setjmp"),
            ("libc", "longjmp"),
            ("syscalls", "sys_enter_openat"),
        ];
        let near = |group, name| nearest_in_groups(group, name, known, 2).join(" ");
        assert_eq!(
            near(Some("a_provider_of_a_long_name"), "gte"),
            "a_provider_of_a_long_name:get"
        );
        assert_eq!(near(None, "gte"), "a_provider_of_a_long_name:get");
        assert_eq!(near(Some("*"), "setjump"), "libc:setjmp");
        assert_eq!(near(Some("glibc"), "setjmp"), "libc:setjmp");
        assert_eq!(near(Some("elsewhere"), "setjmp"), "libc:setjmp");
        assert_eq!(near(Some("libv"), "*"), "libc:longjmp libc:setjmp");
        assert_eq!(
            near(Some("syscall"), "sys_enter_opennat"),
            "syscalls:sys_enter_openat"
        );
        assert_eq!(near(Some("syscalls"), "nothing_like_it"), "");
        assert_eq!(near(None, ""), "");
    }
}
