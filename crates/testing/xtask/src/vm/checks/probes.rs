//! Checks of every kind of probe of `dptrace run`, on the demo target.

use anyhow::{Context as _, ensure};
use demo_target::Truth;
use xtask::{GuestAnswer, GuestCommand};

use super::{Check, Needs, TRUTH, truth_of};

/// Expected output of a script.
#[derive(Clone, Copy)]
enum Shows {
    /// `@` is the target's own count of hits of this probe.
    Hits(&'static str),
    /// `@` is not 0; its value depends on the clock.
    Some,
    /// The output contains this text.
    Part(&'static str),
    /// The output is these lines.
    Lines(&'static [&'static str]),
}

/// Row of the table: name, script, expected output, and needs.
type Row = (&'static str, &'static str, Shows, &'static [Needs]);

/// Names that the target's threads give themselves; the kernel's probes are at that place.
const NAMES: Shows = Shows::Lines(&["@[reactor_0]: 1", "@[reactor_1]: 1"]);

#[rustfmt::skip]
const ROWS: [Row; 23] = [
    ("`usdt`", "usdt:__EXE__:spdk:nvmf_ctrlr_add_qpair { @ = count(); }",
        Shows::Hits("spdk:nvmf_ctrlr_add_qpair"), &[]),
    ("`usdt` with a semaphore", "usdt:__EXE__:demo:request_lazy { @ = count(); }",
        Shows::Hits("demo:request_lazy"), &[]),
    ("`uprobe`", "uprobe:__EXE__:demo_request_start { @ = count(); }",
        Shows::Hits("demo_request_start"), &[]),
    ("`uretprobe`", "uretprobe:__EXE__:demo_request_complete /retval > 0/ { @ = count(); }",
        Shows::Hits("demo_request_complete"), &[]),
    ("`tracepoint`", "tracepoint:task:task_rename /pid == cpid && tid != pid/ { @[str(args.newcomm)] = count(); }",
        NAMES, &[Needs::Feature("tracepoints", "")]),
    ("`rawtracepoint`", "rawtracepoint:task_rename /pid == cpid && tid != pid/ { @[str(arg1)] = count(); }",
        NAMES, &[Needs::Feature("raw tracepoints", "")]),
    ("`rawtracepoint` with types (tp_btf)",
        "rawtracepoint:task_rename /pid == cpid && tid != pid/ { @[str(args.comm)] = count(); }",
        NAMES, &[Needs::Feature("typed tracepoints (tp_btf)", "")]),
    ("`kprobe`", "kprobe:__set_task_comm /pid == cpid && tid != pid/ { @[str(arg1)] = count(); }",
        NAMES, &[Needs::Feature("kprobes", "CONFIG_KPROBES")]),
    ("`kretprobe`", "kretprobe:__set_task_comm /pid == cpid && tid != pid/ { @[comm] = count(); }",
        NAMES, &[Needs::Feature("kprobes", "CONFIG_KPROBES")]),
    ("`fentry`", "fentry:__set_task_comm /pid == cpid && tid != pid/ { @[str(args.buf)] = count(); }",
        NAMES, &[Needs::Feature("fentry", "CONFIG_FUNCTION_TRACER")]),
    ("`fexit`", "fexit:__set_task_comm /pid == cpid && tid != pid/ { @[comm] = count(); }",
        NAMES, &[Needs::Feature("fexit", "CONFIG_FUNCTION_TRACER")]),
    ("`path` in `fentry`", "fentry:filp_close /pid == cpid/ { @[path(args.filp.f_path)] = count(); }",
        Shows::Part("@[/"), &[Needs::Feature("fentry", "CONFIG_FUNCTION_TRACER")]),
    ("`iter`", "iter:task_file /ctx.task.tgid == curtask.tgid/ { @[ctx.fd] = count(); }",
        Shows::Lines(&["@[0]: 1", "@[1]: 1", "@[2]: 1"]), &[]),
    ("`path` in `iter`", "iter:task_file /ctx.task.tgid == curtask.tgid/ { @[path(ctx.file.f_path)] = count(); }",
        Shows::Part("@[/dev/null]: "), &[Needs::Release(5, 12)]),
    ("`interval`", "interval:ms:20 { @ = count(); }", Shows::Some, &[]),
    ("`profile`", "config = { filter_pid = false } profile:hz:99 { @ = count(); }", Shows::Some, &[]),
    ("`software`", "software:page-faults:1 /pid == cpid/ { @ = count(); }", Shows::Some, &[]),
    ("`hardware`", "hardware:cpu-cycles:1000000 { @ = count(); }",
        Shows::Some, &[Needs::Feature("perf hardware events", "virtual machine")]),
    ("`while`, `for` over a range, `strcontains`", "begin { $i = 0; while ($i < 5) { $i++; } print($i); exit(); }",
        Shows::Lines(&["5"]), &[Needs::Release(5, 17)]),
    ("`for` over a map, `len`", "begin { @a[1] = 7; print(len(@a)); clear(@a); exit(); }",
        Shows::Lines(&["1"]), &[Needs::Release(5, 13)]),
    ("`@` of `count` and others as a number", "begin { @c = count(); print((int64)@c + 4); exit(); }",
        Shows::Lines(&["5"]), &[Needs::Release(5, 19)]),
    ("`kstack`", "tracepoint:task:task_rename /pid == cpid && tid != pid/ { @[kstack(4)] = count(); }",
        Shows::Part("__set_task_comm+"), &[]),
    ("`ustack`", "uprobe:__EXE__:demo_request_start { @[ustack(1)] = count(); }",
        Shows::Part("demo_request_start+0"), &[]),
];

/// Returns all checks.
pub(super) fn all() -> Vec<Check> {
    let target =
        format!("dptrace demo-target --requests 200 --for 20s --no-trace-file --truth {TRUTH}");
    let check = |&(name, script, shows, needs): &Row| {
        let command = GuestCommand::new(&["dptrace", "run", "-q", "-e", script, "-c", &target])
            .with_file(TRUTH);
        Check::new(
            "Scripts",
            name,
            command,
            needs,
            move |answer: &GuestAnswer| shown(shows, answer),
        )
    };
    ROWS.iter().map(check).collect()
}

fn shown(shows: Shows, answer: &GuestAnswer) -> anyhow::Result<()> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let count = || -> anyhow::Result<u64> {
        let line = answer
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("@: "))
            .context("no @ was printed")?;
        Ok(line.parse()?)
    };
    match shows {
        Shows::Hits(name) => {
            let truth: Truth = truth_of(answer)?;
            let hits = truth.hits.get(name).copied().unwrap_or_default();
            ensure!(
                hits > 0 && count()? == hits,
                "{} counted, {hits} hits",
                count()?
            );
        }
        Shows::Some => ensure!(count()? > 0, "nothing was counted"),
        Shows::Part(part) => ensure!(answer.stdout.contains(part), "nothing with {part}"),
        Shows::Lines(lines) => {
            for line in lines {
                ensure!(
                    answer.stdout.lines().any(|shown| shown == *line),
                    "no line {line:?}"
                );
            }
        }
    }
    Ok(())
}
