//! The built-in object specs as text, as a list, and as JSON.

use errors::usage;
use serde_json::json;
use text::patterns;

/// Form in which specs are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecForm {
    /// Text of the spec files.
    Whole,
    /// Name and purpose, one line each.
    List,
    /// Name and purpose as JSON objects.
    Json,
}

/// Returns the built-in object specs, or the one of this name, in that form.
///
/// # Errors
/// Fails if there is no spec of this name.
pub fn specs(name: Option<&str>, form: SpecForm) -> anyhow::Result<String> {
    let known = objects::BUILT_IN;
    let stem = |file: &'static str| file.trim_end_matches(".toml");
    let wanted: Vec<_> = known
        .iter()
        .filter(|(file, _)| name.is_none_or(|n| n == stem(file)))
        .collect();
    if wanted.is_empty() {
        let all: Vec<_> = known.iter().map(|(file, _)| stem(file)).collect();
        let name = name.unwrap_or_default();
        let hint = patterns::hint(name, all.iter().copied());
        return Err(usage(format!(
            "there is no object spec {name:?}; the built-in specs are {}{hint}",
            all.join(", ")
        )));
    }
    if form == SpecForm::Json {
        let object = |(file, text): &&(&'static str, &str)| json!({ "name": stem(file), "about": about(text) });
        let lines: Vec<String> = wanted
            .iter()
            .map(|spec| text::json::document("objects.spec", &object(spec)) + "\n")
            .collect();
        return Ok(lines.concat());
    }
    if form == SpecForm::List {
        let width = wanted
            .iter()
            .map(|(file, _)| stem(file).len())
            .max()
            .unwrap_or_default();
        let lines: Vec<_> = wanted
            .iter()
            .map(|(file, text)| format!("{:width$}  {}\n", stem(file), about(text)))
            .collect();
        return Ok(lines.concat());
    }
    let text: Vec<_> = wanted.iter().map(|(_, text)| *text).collect();
    Ok(text.join("\n"))
}

/// Returns the built-in specs with their purposes.
pub fn spec_names() -> impl Iterator<Item = (&'static str, String)> {
    objects::BUILT_IN
        .iter()
        .map(|(file, text)| (file.trim_end_matches(".toml"), about(text)))
}

/// Returns the first sentence of a spec's first comment, which may span lines.
fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("# "));
    let comment = lines.collect::<Vec<_>>().join(" ");
    comment
        .split_once(". ")
        .map_or(comment.as_str(), |(first, _)| first)
        .trim_end_matches('.')
        .to_owned()
}
