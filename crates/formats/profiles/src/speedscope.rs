//! The JSON of speedscope, by its `file-format-spec.ts`: one profile of samples with weights.

use serde_json::json;

use crate::{Profile, Unit};

/// Formats a profile.
pub(crate) fn text(profile: &Profile) -> String {
    let frames: Vec<_> = profile
        .names
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let (samples, weights): (Vec<&[u32]>, Vec<u64>) = profile.stacks().into_iter().unzip();
    let unit = match profile.unit {
        Unit::Count => "none",
        Unit::Nanoseconds => "nanoseconds",
    };
    let sum = weights
        .iter()
        .fold(0, |sum: u64, it| sum.saturating_add(*it));
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "dptrace",
        "name": profile.title,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled", "name": profile.title, "unit": unit, "startValue": 0, "endValue": sum,
            "samples": samples, "weights": weights,
        }],
    });
    file.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_outermost_first() {
        let mut profile = Profile::new("cpu", Unit::Count);
        profile.add(["a", "b"], 5);
        profile.add(["a"], 9);
        let file: serde_json::Value = serde_json::from_str(&text(&profile)).unwrap();
        let of = &file["profiles"][0];
        assert_eq!(of["samples"], json!([[0], [0, 1]]));
        assert_eq!(of["weights"], json!([9, 5]));
        assert_eq!((&of["endValue"], &of["unit"]), (&json!(14), &json!("none")));
        assert_eq!(file["shared"]["frames"][1]["name"], "b");
    }
}
