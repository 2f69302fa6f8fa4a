//! Times of two words, `--for 2 s`, whose unit would be taken for a process or a file.

use clap::Command;

use crate::complete::find_option;

/// Units that users type after a blank.
const UNITS: [&str; 6] = ["ns", "us", "ms", "s", "m", "h"];

/// Returns the sentence for a time in two words among those after the program's name. It is no
/// mistake if the unit `is_name` of something else. `grammar` is made only if there may be one.
pub fn explain_split_time(
    words: &[&str],
    grammar: impl FnOnce() -> Command,
    is_name: impl Fn(&str) -> bool,
) -> Option<String> {
    let end = words.iter().position(|word| *word == "--");
    let words = &words[..end.unwrap_or(words.len())];
    let is_split = |three: &&[&str]| {
        let (number, unit) = (three[1], three[2]);
        number.parse::<f64>().is_ok() && UNITS.contains(&unit) && !is_name(unit)
    };
    let times: Vec<_> = words.windows(3).filter(is_split).collect();
    let name = words.first().filter(|_| !times.is_empty())?;
    let grammar = grammar();
    let command = grammar.find_subcommand(name)?;
    times.into_iter().find_map(|three| {
        let (option, value) = find_option(command, three[0])?;
        let names = option.get_value_names().unwrap_or_default();
        let takes_time = names
            .iter()
            .any(|name| matches!(&**name, "DURATION" | "NS"));
        (takes_time && value.is_none()).then(|| {
            format!(
                "a time is one word: write {} {}{}",
                three[0], three[1], three[2]
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn a_time_is_one_word() {
        let arg = |name: &'static str, value| Arg::new(name).long(name).value_name(value);
        let grammar = || {
            let delay = clap::Command::new("delay")
                .arg(arg("for", "DURATION").visible_alias("sample-time"))
                .arg(arg("head", "N"))
                .arg(arg("syscalls", "NS").short('s'));
            clap::Command::new("it").subcommand(delay)
        };
        let said = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            explain_split_time(&words, grammar, |unit| unit == "m")
        };
        let why = |words: &str| Some(format!("a time is one word: write {words}"));
        assert_eq!(said("delay --for 2 s"), why("--for 2s"));
        assert_eq!(
            said("delay -p 1 --sample-time 0.5 h"),
            why("--sample-time 0.5h")
        );
        assert_eq!(said("delay -s 20 us -p 1"), why("-s 20us"));
        for fine in [
            "delay --for 2s",
            "delay --for 2 m",
            "delay --head 2 s",
            "delay --for=2 2 s",
            "delay --for 2 nginx",
            "delay -- sleep --for 2 s",
            "other --for 2 s",
            "s",
        ] {
            assert_eq!(said(fine), None, "{fine}");
        }
    }
}
