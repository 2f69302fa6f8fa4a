//! A script's help, and remarks on the words after its name.

use bt_lang::inputs::ScriptInputs;
use text::printable;

use super::source::ScriptText;

/// Returns whether the words ask for the script's help, and the script has no such option of its
/// own.
pub(super) fn is_help_asked(inputs: &ScriptInputs, params: &[String]) -> bool {
    params.iter().any(|param| param == "--help") && !inputs.has_option("help")
}

/// Returns the script's help: its first comment, its usage, and its options.
pub(super) fn help(inputs: &ScriptInputs, text: &ScriptText) -> String {
    let mut lines = text.first_comment();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let call = if text.is_file() {
        text::shell::word(text.called()).into_owned()
    } else {
        "-e PROGRAM".to_owned()
    };
    // A script can name them in its comment.
    let named = lines.iter().find_map(|line| line.strip_prefix("takes:"));
    let arguments = named.map_or_else(
        || inputs.argument_words(&text.text),
        |takes| bundled_scripts::named(takes).to_owned(),
    );
    let blank = if arguments.is_empty() { "" } else { " " };
    let options = if inputs.options.is_empty() {
        ""
    } else {
        " [-- OPTIONS OF THE SCRIPT]"
    };
    lines.push(format!(
        "usage: dptrace run [OPTIONS] {call}{blank}{arguments}{options}"
    ));
    if let Some(bundled) = text.bundled {
        lines.push(format!("example: {}", bundled.example()));
    }
    lines.push(String::new());
    if inputs.options.is_empty() {
        lines.push("The script has no options of its own.".to_owned());
    } else {
        lines.push("Options of the script:".to_owned());
        lines.extend(inputs.option_lines());
    }
    let text = lines.join("\n") + "\n";
    printable::lines(text.as_bytes()).into_owned()
}

/// Returns remarks on the words after the script's name: a missing argument, or one that the
/// script never reads.
pub(super) fn remarks(inputs: &ScriptInputs, text: &ScriptText) -> Vec<String> {
    let given: Vec<&String> = text
        .params
        .iter()
        .filter(|param| !param.starts_with("--"))
        .collect();
    let mut remarks = Vec::new();
    let most = inputs.arguments.last().copied().unwrap_or_default() as usize;
    // The bundled scripts can do without their arguments.
    if most > given.len() && !inputs.reads_count && text.bundled.is_none() {
        let missing = given.len() + 1;
        let (rest, are) = if missing == most {
            (String::new(), "is")
        } else {
            (format!(" to ${most}"), "are")
        };
        let place = if text.is_file() {
            "the script"
        } else {
            "-e PROGRAM"
        };
        let name = &text.name;
        remarks.push(format!(
            "{name} reads ${missing}{rest}, which {are} not given and so 0: put arguments \
             after {place}"
        ));
    }
    // Arguments in names of probes were substituted already, so the text is searched too.
    // A script that reads the number of arguments can read more than it names; for bundled ones
    // it is known.
    let can_read_more = inputs.reads_count && text.bundled.is_none();
    let is_read = |number: usize| {
        can_read_more || number <= most || text.text.contains(&format!("${number}"))
    };
    let unread = given
        .iter()
        .enumerate()
        .filter(|(index, _)| !is_read(index + 1));
    let unread: Vec<String> = unread
        .map(|(_, word)| text::shell::word(word.as_str()).into_owned())
        .collect();
    if !unread.is_empty() {
        let known = match most {
            0 => "takes no arguments".to_owned(),
            1 => "takes one argument".to_owned(),
            most => format!("takes {most} arguments"),
        };
        let is_process = unread.iter().all(|word| word.parse::<u32>().is_ok());
        let process = if is_process {
            " (to name a process, use -p PID)"
        } else {
            ""
        };
        remarks.push(format!(
            "{} {known}; not used: {}{process}",
            text.name,
            unread.join(" ")
        ));
    }
    remarks
}
