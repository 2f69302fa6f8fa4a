//! Maps keep every key until they are full, in any context of a probe, and each loss is counted
//! under its cause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use crate::common::kernel::{PROGRAM, kernel};

/// Runs a script; returns its standard output and standard error.
#[track_caller]
fn run(script: &str) -> (String, String) {
    run_with(&[], script)
}

#[track_caller]
fn run_with(environment: &[(&str, &str)], script: &str) -> (String, String) {
    let mut command = testkit::command(PROGRAM);
    let output = command
        .args(["run", "-q", "-e", script])
        .env("NO_COLOR", "1")
        .envs(environment.to_vec())
        .output();
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{script}: {out}{err}");
    (out, err)
}

/// Interrupts are off in timers: the kernel has memory for one per-CPU value in reserve there, and
/// can't get more.
#[test]
fn a_timer_keeps_all_its_keys() {
    let Some(_alone) = kernel() else { return };
    // On a busy machine the timer fires again before the script has ended.
    let (out, err) = run(r#"
        interval:ms:50 /@times == 0/ { @b["x"] = sum(1); @b["y"] = sum(2); @b["z"] = sum(3); @times = 1; exit(); }
        end { clear(@times); }"#);
    assert_eq!(
        (out.trim(), err.as_str()),
        ("@b[x]: 1\n@b[y]: 2\n@b[z]: 3", "")
    );
}

/// Each kind of aggregation, with thousands of keys at once, and all operations on them.
#[test]
fn a_map_is_copied_into_aggregations_by_a_timer() {
    let Some(_alone) = kernel() else { return };
    let (out, err) = run("config = { max_map_keys = 2000 }
        begin { $i = 0; while ($i < 2000) { @a[$i] = $i; $i++ } }
        interval:ms:50 /@times == 0/ {
            @times = 1;
            for ($kv : @a) {
                $n = $kv.1;
                @sum[$kv.0] = sum($n); @min[$kv.0, 1] = min($n); @max[$kv.0] = max($n); @avg[$kv.0] = avg($n);
                @stats[$kv.0] = stats($n); @hist[$kv.0] = hist($n, 2); @lhist[$kv.0] = lhist($n, 0, 2000, 500);
                @series[$kv.0] = tseries($n, 1s, 2);
            }
            exit();
        }
        end {
            $wrong = 0; $seen = 0;
            for ($kv : @sum) {
                $seen++;
                $k = $kv.0;
                if ($kv.1 != $k || @sum[$k] != $k || @min[$k, 1] != $k || @max[$k] != $k || @avg[$k] != $k) { $wrong++; }
                if (!has_key(@hist, $k) || !delete(@max, $k) || has_key(@max, $k) || delete(@max, $k)) { $wrong++; }
            }
            printf(\"%d %d %d %d %d %d\\n\", $seen, $wrong, len(@sum), len(@max), len(@hist), len(@series));
            print(@stats[1999]); print(@lhist[1999]);
            clear(@times); clear(@a); clear(@sum); clear(@min); clear(@avg); clear(@stats); clear(@hist); clear(@lhist); clear(@series);
        }");
    assert!(
        out.starts_with(
            "2000 0 2000 0 2000 2000\n{ .count = 1, .average = 1999, .total = 1999 }\n"
        ),
        "{out}{err}"
    );
    assert!(out.contains("[1500, 2000)           1 |@"), "{out}");
    // Cleared keys are gone from every place.
    assert!(!out.contains("@sum[") && !out.contains("@hist["), "{out}");
    assert_eq!(err, "");
}

/// The scheduler's tracepoints run with interrupts off, thousands of times a second, on all CPUs.
#[test]
fn the_schedulers_tracepoints_keep_all_their_keys() {
    let Some(_alone) = kernel() else { return };
    let goes_on = AtomicBool::new(true);
    let (out, err) = std::thread::scope(|scope| {
        // Two threads that wait for each other.
        let ((ball, arrivals), (back, returns)) = (mpsc::channel(), mpsc::channel());
        scope.spawn(move || while arrivals.recv().is_ok() && back.send(()).is_ok() {});
        let goes_on = &goes_on;
        scope.spawn(move || {
            while goes_on.load(Ordering::Relaxed) && ball.send(()).is_ok() && returns.recv().is_ok()
            {
            }
        });
        let done = std::panic::catch_unwind(|| {
            run("tracepoint:sched:sched_switch {
                    $n = @next++;
                    if ($n < 3000) { @hist[comm, $n] = hist($n, 5); @most[$n] = max($n); @count[$n % 64] = count(); }
                    if ($n == 3000) { exit(); }
                }
                end {
                    $total = (uint64)0; $wrong = 0;
                    for ($kv : @count) { $total += (uint64)$kv.1; }
                    for ($kv : @most) { if ($kv.0 != $kv.1) { $wrong++; } }
                    printf(\"%d %d %d %d\\n\", len(@hist), len(@most), $wrong, $total);
                    clear(@hist); clear(@most); clear(@count); clear(@next);
                }")
        });
        goes_on.store(false, Ordering::Relaxed);
        done.expect("the script runs")
    });
    assert_eq!(
        (out.lines().next(), err.as_str()),
        (Some("3000 3000 0 3000"), ""),
        "{out}"
    );
}

#[test]
fn a_map_is_full_when_it_has_as_many_keys_as_it_may() {
    let Some(_alone) = kernel() else { return };
    let (out, err) = run(
        "begin { for ($i : 0..5000) { @a[$i] = count(); } printf(\"%d\\n\", len(@a)); clear(@a); }",
    );
    assert!(out.starts_with("4096\n"), "{out}");
    assert!(
        err.contains("WARNING: the map is full") && err.contains("retcode: -7"),
        "{err}"
    );
    assert!(
        err.ends_with(": 904 values were not stored: the map was full\n"),
        "{err}"
    );
    // Existing keys keep counting, and a deleted key makes room for another.
    let (out, err) = run("config = { max_map_keys = 2 } interval:ms:50 /@times == 0/ {
            @a[1] = sum(1); @a[2] = sum(1); @a[3] = sum(1); @a[2] = sum(1); delete(@a, 1); @a[4] = sum(1);
            @times = 1; exit();
        } end { clear(@times); }");
    assert_eq!(out.trim(), "@a[4]: 1\n@a[2]: 2");
    assert_eq!(err.matches("WARNING").count(), 1, "{err}");
}

#[test]
fn a_loop_that_is_cut_is_a_failure_of_its_place() {
    let Some(_alone) = kernel() else { return };
    let cut = "WARNING: the loop was cut after 8388608 iterations: the kernel allows no more\n";
    for (condition, script) in [
        ("~", "begin { while (1) { } }"),
        (
            "~~~~~~~~~~~~~",
            "begin { $i = 0; while ($i < 10000000) { $i++ } }",
        ),
        ("~~~~~~~", "begin { for ($i : 0..9000000) { } }"),
    ] {
        let (_, err) = run(script);
        assert!(
            err.contains(cut) && err.ends_with(&format!(" {condition}\n")),
            "{err}"
        );
    }
    let (_, err) = run(
        "begin { $i = 0; while ($i < 8388608) { $i++ } for ($j : 0..8388608) { } while (1) { break; } }",
    );
    assert_eq!(err, "");
}

/// The first epoch is number 0: the machine's first hour, where series have an hour's buckets.
#[test]
fn a_series_has_its_first_epoch() {
    let Some(_alone) = kernel() else { return };
    let (out, err) = run_with(
        &[("BPFTRACE_DUMMY_TS_MAP", "@now")],
        "begin {
            @now = (uint64)0; @last = tseries(5, 1s, 4); @sum = tseries(5, 1s, 4, \"sum\");
            @now = (uint64)1000000000; @last = tseries(7, 1s, 4); @sum = tseries(7, 1s, 4, \"sum\");
        }",
    );
    assert_eq!(out.matches("| 5\n").count(), 2, "{out}{err}");
    assert_eq!(out.matches("* 7\n").count(), 2, "{out}{err}");
}
