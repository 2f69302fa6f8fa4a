//! A script from its text to programs in the kernel.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use bpf_session::SessionError;
use bt_compiler::compile;
use bt_lang::Diagnostic;
use bt_lang::ast::Program;
use sys::process::HeldChild;

use crate::builder::Builder;
use crate::error::Diagnostics;
use crate::facts::{Facts, Subject, Target, all_ended};
use crate::observe::Notice;
use crate::process_id::Processes;
use crate::session::Session;
use crate::{Error, attach, name_tables, not_loaded, process_id};

/// A script that was parsed.
#[must_use = "a parsed script does nothing until it is compiled"]
pub struct ParsedScript {
    builder: Builder,
    program: Program,
    warnings: Vec<Diagnostic>,
}

impl ParsedScript {
    pub(crate) fn parse(builder: Builder) -> Result<Self, Error> {
        let options = bt_lang::Options {
            params: Some(&builder.options.params),
            ..bt_lang::Options::default()
        };
        let parsed = bt_lang::parse_with(&builder.text, options);
        if parsed.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(mistakes(&builder, parsed.diagnostics, None));
        }
        Ok(Self {
            builder,
            program: parsed.program,
            warnings: parsed.diagnostics,
        })
    }

    /// Returns the syntax tree, for formatters and the like.
    #[doc(hidden)]
    pub fn syntax_tree(&self) -> &Program {
        &self.program
    }

    /// Returns the warnings of the parser.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns true if the script itself states the processes that it is about (`__PID__`,
    /// `is_target`), as scripts do whose probes have the events of the whole machine.
    pub fn asks_for_target(&self) -> bool {
        process_id::asks(&self.program)
    }

    /// Replaces the builder's target.
    pub fn target(mut self, target: Target) -> Self {
        self.builder.target = target;
        self
    }

    /// Compiles the script. Starts the command of a target; it waits before its first instruction.
    pub fn compile(mut self) -> Result<Script, Error> {
        let (subject, held) = Subject::open(&self.builder.target)?;
        let facts = Facts::new(
            subject,
            self.builder.options.clone(),
            Arc::clone(&self.builder.observer),
        );
        process_id::put_in(&mut self.program, &Processes::from_facts(&facts)?)?;
        name_tables::put_in(&mut self.program, |name| facts.files.enumeration(name));
        // Nothing is found in processes that end meanwhile: that is no mistake of the script's.
        let instead = |error| all_ended(&facts.running()).unwrap_or(error);
        let (compiled, warnings) =
            compiled(&self.builder, &self.program, &facts).map_err(instead)?;
        if let Target::Pids(pids) = &self.builder.target {
            let count = pids
                .iter()
                .filter(|pid| all_ended(&[**pid]).is_some())
                .count();
            if count > 0 {
                self.builder.observer.notice(&Notice::Ended { count });
            }
        }
        let keep = Box::new(|_: &str| true);
        Ok(Script {
            builder: self.builder,
            program: self.program,
            compiled,
            warnings,
            facts,
            held,
            keep,
        })
    }
}

/// Returns the programs of a script, and the compiler's warnings.
fn compiled(
    builder: &Builder,
    program: &Program,
    facts: &Facts,
) -> Result<(bt_abi::Script, Vec<Diagnostic>), Error> {
    let compiled = compile(program, facts);
    if compiled.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(mistakes(builder, compiled.diagnostics, Some(facts)));
    }
    let script = compiled.script.ok_or(Error::NotCompiled)?;
    Ok((script, compiled.diagnostics))
}

fn mistakes(builder: &Builder, list: Vec<Diagnostic>, facts: Option<&Facts>) -> Error {
    let (name, text) = (Arc::clone(&builder.name), Arc::clone(&builder.text));
    let tracepoints_refused = facts.and_then(Facts::tracepoints_refused);
    let file_refused = facts.and_then(|facts| facts.files.refused());
    Error::Script(Diagnostics {
        name,
        text,
        list,
        tracepoints_refused,
        file_refused,
    })
}

/// A compiled script. The command of a target waits before its first instruction, and is ended with
/// this.
#[must_use = "a script does nothing until it is loaded"]
pub struct Script {
    builder: Builder,
    program: Program,
    compiled: bt_abi::Script,
    warnings: Vec<Diagnostic>,
    facts: Facts,
    held: Option<HeldChild>,
    /// Predicate of the wanted probes, by their names.
    keep: Box<dyn Fn(&str) -> bool>,
}

impl Script {
    /// Returns a builder for a script's text.
    pub fn builder(text: &str) -> Builder {
        Builder::new(text)
    }

    /// Returns the warnings of the compiler.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    pub(crate) fn prepend_warnings(&mut self, warnings: Vec<Diagnostic>) {
        self.warnings.splice(0..0, warnings);
    }

    /// Returns programs, maps, probes and events, as the compiler made them: for tools that show or
    /// store them.
    #[doc(hidden)]
    pub fn compiled(&self) -> &bt_abi::Script {
        &self.compiled
    }

    /// Removes the probes whose full names (`uprobe:/bin/bash:readline`) are not wanted. `begin`
    /// and `end` stay.
    pub fn retain_probes(&mut self, keep: impl Fn(&str) -> bool + 'static) {
        self.keep = Box::new(keep);
        self.filter();
    }

    fn filter(&mut self) {
        let is_run =
            |attach: &bt_abi::Attach| matches!(attach, bt_abi::Attach::Begin | bt_abi::Attach::End);
        self.compiled
            .probes
            .retain(|probe| is_run(&probe.attach) || (self.keep)(&probe.name));
    }

    /// Makes the script's maps and loads its programs. Nothing is attached yet.
    pub fn load(mut self) -> Result<Session, Error> {
        let files = attach::files(&self.compiled);
        if let Some(notice) = not_loaded::notice(&files, self.facts.files.subject()) {
            self.builder.observer.notice(&notice);
        }
        let session = match bpf_session::Session::load(&self.compiled.module, self.facts.features())
        {
            // If the kernel does not let this script's programs wait for memory, they do without.
            Err(SessionError::Refused { .. })
                if self.compiled.module.programs.iter().any(|it| it.sleepable) =>
            {
                self.facts.forbid_sleepable();
                (self.compiled, self.warnings) =
                    compiled(&self.builder, &self.program, &self.facts)?;
                self.filter();
                bpf_session::Session::load(&self.compiled.module, self.facts.features())?
            }
            loaded => loaded?,
        };
        Ok(Session::new(
            self.compiled,
            session,
            &self.facts,
            self.held,
            &self.builder,
        ))
    }
}

impl Debug for ParsedScript {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParsedScript")
            .field("builder", &self.builder)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

impl Debug for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("builder", &self.builder)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
