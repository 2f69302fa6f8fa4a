//! `--dump`: the intermediate forms of a script, for people.

use bpf_insn::Listing;
use bt_abi::Script;
use console::output::Output;
use text::printable;
use whole_file::Access;

use super::Lines;
use super::options::{DumpName, RunArgs};

/// Prints one of the forms.
pub(super) fn dump(script: &Script, what: DumpName, args: &RunArgs) -> anyhow::Result<()> {
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    match what {
        // The syntax tree was printed before compilation.
        DumpName::Ast => {}
        DumpName::Types => output
            .buffer
            .extend(printable::lines(types(script).as_bytes()).as_bytes()),
        DumpName::Insns => {
            output
                .buffer
                .extend(printable::lines(instructions(script).as_bytes()).as_bytes());
        }
        DumpName::Object => output.buffer.extend(script.module.to_object().build()?),
    }
    Ok(output.finish()?)
}

fn types(script: &Script) -> String {
    let mut lines = Lines::default();
    for probe in &script.probes {
        lines.push(format_args!(
            "probe {} ({}): {:?}",
            probe.name, probe.count, probe.attach
        ));
    }
    for map in &script.maps {
        lines.push(format_args!(
            "map {}[{:?}]: {:?}",
            map.name, map.key, map.value
        ));
    }
    for (index, action) in script.actions.iter().enumerate() {
        lines.push(format_args!(
            "event {index}: {:?}, {} bytes",
            action.kind, action.size
        ));
        for field in &action.fields {
            lines.push(format_args!("  at {}: {:?}", field.offset, field.ty));
        }
    }
    lines.0
}

fn instructions(script: &Script) -> String {
    let mut lines = Lines::default();
    for program in &script.module.programs {
        lines.push(format_args!(
            "{}: {:?}, {} instructions",
            program.name,
            program.kind,
            program.code.slots()
        ));
        lines.push(Listing::new(&program.code));
    }
    lines.0
}
