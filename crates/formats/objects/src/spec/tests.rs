//! Tests of the built-in specs, and of faults in others.

use super::*;

#[test]
fn the_built_in_specs_are_sound() {
    let specs = built_in().unwrap();
    let qpair = specs.iter().find(|s| s.name == "qpair").unwrap();
    let properties: Vec<_> = qpair.properties.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(properties, ["ptr", "thread", "qid", "subnqn", "hostnqn"]);
    let names: Vec<_> = specs.iter().map(|s| format!("{}.toml", s.name)).collect();
    assert_eq!(
        names,
        BUILT_IN.map(|(file, _)| file),
        "a file is called like its object"
    );
    for spec in &specs {
        let string = |p: &ProbeSpec| p.args.iter().any(|a| a.name == spec.key && a.string);
        assert!(
            spec.probes.iter().all(string) || !spec.probes.iter().any(string),
            "{}: a key of one kind",
            spec.name
        );
    }
    // A tracepoint argument points to the first spec that claims it.
    let mut claimed: Vec<_> = specs.iter().flat_map(|s| &s.tracepoint_args).collect();
    claimed.sort_unstable();
    assert!(claimed.is_sorted_by(|a, b| a < b), "{claimed:?}");
}

#[test]
fn a_wrong_spec_says_what_is_wrong() {
    let wrong = |text: &str| parse_specs(text).unwrap_err().to_string();
    let head = "[[object]]\nname = \"x\"\nkey = \"p\"\n";
    assert!(wrong("[[object]]\nname = 1").contains("expected a string"));
    assert!(wrong(&format!("{head}colour = 1\nprobe = []")).contains("unknown field `colour`"));
    assert!(
        wrong(&format!("{head}probe = []")).contains("no probe has the role \"begin\" or \"seen\"")
    );
    let probe = "[[object.probe]]\nname = \"b\"\nrole = \"begin\"\n";
    assert!(wrong(&format!("{head}{probe}args = [\"tsc\"]")).contains("has no argument \"p\""));
    assert!(
        wrong(&format!("{head}{probe}args = [\"tsc\", \"p: float\"]"))
            .contains("neither \"int\" nor")
    );
    assert!(
        wrong(&format!("{head}{probe}args = [\"tsc\", \"p\", \"p\"]"))
            .contains("two arguments \"p\"")
    );
    let named = probe.replace("\"b\"", "\"b(\"");
    assert!(
        wrong(&format!("{head}{named}args = [\"tsc\", \"p\"]"))
            .contains("letters, digits and underscores")
    );
    let args = "args = [\"tsc\", \"p\"]\n";
    assert!(wrong(&format!("{head}{probe}{args}{probe}{args}")).contains("\"b\" occurs twice"));
    let property = "[[object.property]]\nname = \"q\"\n";
    let text = format!("{head}{probe}args = [\"tsc\", \"p\"]\n{property}");
    assert!(wrong(&text).contains("no probe has an argument \"q\""));
}
