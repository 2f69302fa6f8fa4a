//! Words that the parser must know: keywords, and names that cannot be types.

/// Words that begin a statement, or are part of one, and so can't be an expression.
const RESERVED: [&str; 11] = [
    "else", "for", "let", "while", "unroll", "return", "break", "continue", "struct", "union",
    "enum",
];

/// Returns whether the word can't be an expression by itself.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Builtins, old and new: `(pid) - 1` is a difference, `(foo) - 1` a cast.
const BUILTINS: [&str; 32] = [
    "args", "cgroup", "comm", "cpid", "cpu", "ctx", "curtask", "elapsed", "func", "gid", "jiffies",
    "kstack", "ncpus", "nsecs", "numaid", "pcomm", "pid", "ppid", "probe", "rand", "retval", "tid",
    "time", "uid", "username", "usermode", "ustack", "cat", "exit", "NULL", "true", "false",
];

/// Returns whether the word is a builtin, and so no type.
pub(crate) fn is_builtin(word: &str) -> bool {
    let numbered = |prefix: &str| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    BUILTINS.contains(&word)
        || word.starts_with("__builtin_")
        || numbered("arg")
        || numbered("sarg")
}

/// Builtins that cannot name a macro parameter: those that aren't macros themselves in bpftrace
/// 0.27.
const FIXED: [&str; 7] = ["args", "ctx", "kstack", "nsecs", "pid", "tid", "ustack"];

/// Returns whether the word cannot name a macro parameter.
pub(crate) fn is_fixed(word: &str) -> bool {
    FIXED.contains(&word) || (is_builtin(word) && !BUILTINS.contains(&word))
}

/// Words of C's arithmetic type names.
const C_WORDS: [&str; 9] = [
    "unsigned",
    "signed",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "__signed__",
];

/// Returns whether the word is part of C's arithmetic type names.
pub(crate) fn is_c_word(word: &str) -> bool {
    C_WORDS.contains(&word)
}

/// C qualifiers without effect on a type's layout.
const QUALIFIERS: [&str; 8] = [
    "const",
    "volatile",
    "restrict",
    "__restrict",
    "__user",
    "__kernel",
    "__rcu",
    "__percpu",
];

/// Returns whether the word is a C qualifier that can be dropped.
pub(crate) fn is_qualifier(word: &str) -> bool {
    QUALIFIERS.contains(&word)
}

/// Returns the canonical name of a C arithmetic type, given its words in any order.
pub(crate) fn c_type_name(words: &[&str]) -> String {
    let has = |word: &str| words.contains(&word);
    let longs = words.iter().filter(|word| **word == "long").count();
    let core = match longs {
        _ if has("double") || has("float") => return words.join(" "),
        _ if has("char") => "char",
        _ if has("short") => "short",
        0 => "int",
        1 => "long",
        _ => "long long",
    };
    if has("unsigned") {
        format!("unsigned {core}")
    } else {
        core.to_owned()
    }
}

/// bpftrace's own types without a scalar layout.
const TYPES: [&str; 19] = [
    "string",
    "buffer",
    "inet",
    "count_t",
    "sum_t",
    "usum_t",
    "min_t",
    "umin_t",
    "max_t",
    "umax_t",
    "avg_t",
    "uavg_t",
    "stats_t",
    "ustats_t",
    "timestamp",
    "macaddr_t",
    "cgroup_path_t",
    "kstack_t",
    "ustack_t",
];

/// Returns whether the word is a type of the language.
pub(crate) fn is_type(word: &str) -> bool {
    TYPES.contains(&word) || crate::ast::scalar(word).is_some() || is_c_word(word)
}

/// Returns up to three names similar to `word`, most similar first.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .collect();
    scored.retain(|(distance, name)| *distance <= 1 + name.len() / 4);
    scored.sort_unstable();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}
