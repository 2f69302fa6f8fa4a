use clap::Command as Grammar;

use super::*;

/// Names from other people's traces and processes must not become commands.
#[test]
fn shell_metacharacters_are_not_offered() {
    for value in [
        "$(id)",
        "a b",
        "a;b",
        "`id`",
        "a\u{1b}[m",
        "größe",
        "",
        "a\nb",
        "~root",
        "!!",
        "*",
        "a'b",
    ] {
        assert!(!is_harmless(value), "{value:?}");
    }
    let place_of = |words: &[String]| {
        let tpoint = Arg::new("tpoint").long("tpoint").value_delimiter(',');
        let grammar = Grammar::new("program").subcommand(Grammar::new("trace").arg(tpoint));
        let place = CursorContext::locate(&grammar, words).unwrap();
        let candidates = ["TCP_NEW", "TCP_$(id)", "TCP_NEW", "RDMA"]
            .map(|name| Candidate::new(name, "a\tb\u{1b}[m"));
        Answer::from_candidates(candidates.to_vec()).narrowed(&place)
    };
    let answer = place_of(&["trace".into(), "--tpoint".into(), "X,TCP".into()]);
    assert_eq!(
        answer.candidates,
        [Candidate::new("X,TCP_NEW", "a\\x09b\\x1b[m")]
    );
}
