//! Next step: the command that shows more about processes of a known program.

use screen::share;

use crate::sample::{Sample, ThreadSample};

/// Share of its time for which a process must be blocked to be called mostly blocked.
const MOSTLY_BLOCKED: f64 = 0.5;
/// Program of PostgreSQL's processes, which wait for most things in the same call.
const POSTGRES: &str = "postgres";

/// Returns the command that shows what processes of PostgreSQL wait for, if one of those measured
/// was mostly blocked: their wait for a lock, a pause and an idle connection are the same system
/// call.
pub fn next_step(sample: &Sample) -> Option<String> {
    let first_threads = || sample.threads.iter().filter(|it| it.tid == it.pid);
    let is_blocked = |thread: &ThreadSample| {
        let budget = &thread.budget;
        thread.name == POSTGRES && share(budget.blocked(), budget.window) >= MOSTLY_BLOCKED
    };
    let blocked = first_threads().find(|thread| is_blocked(thread))?;
    // Backends have titles, and the server that starts them has none.
    let (process, they, wait) = if first_threads().count() > 1 {
        (format!("{POSTGRES} --children"), "they", "wait")
    } else if blocked.title.is_none() {
        (
            format!("{} --children", blocked.pid),
            "its backends",
            "wait",
        )
    } else {
        (blocked.pid.to_string(), "it", "waits")
    };
    Some(format!(
        "next: dptrace run pg-waits -p {process} shows whether {they} {wait} for a lock, and who \
         holds it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, CallTime};

    fn thread(pid: u32, name: &str, title: Option<&str>, blocked: u64) -> ThreadSample {
        let calls = vec![CallTime {
            slot: 1,
            cpu: 0,
            blocked,
        }];
        ThreadSample {
            pid,
            tid: pid,
            name: name.to_owned(),
            title: title.map(str::to_owned),
            budget: Budget {
                window: 100,
                user: 100 - blocked,
                calls,
                ..Budget::default()
            },
            ..ThreadSample::default()
        }
    }

    fn of(threads: Vec<ThreadSample>) -> Option<String> {
        next_step(&Sample {
            threads,
            ..Sample::default()
        })
    }

    #[test]
    fn only_blocked_processes_of_postgresql_have_one() {
        let backend = |blocked| thread(7, "postgres", Some("app app [local]"), blocked);
        assert_eq!(
            of(vec![backend(98)]).as_deref(),
            Some(
                "next: dptrace run pg-waits -p 7 shows whether it waits for a lock, and who holds it"
            )
        );
        let several = of(vec![backend(98), thread(8, "postgres", None, 0)]).unwrap();
        assert!(
            several.contains("-p postgres --children shows whether they wait for a lock"),
            "{several}"
        );
        let server = of(vec![thread(8, "postgres", None, 100)]).unwrap();
        assert!(
            server.contains("-p 8 --children shows whether its backends wait for a lock"),
            "{server}"
        );
        assert_eq!(of(vec![backend(40)]), None);
        assert_eq!(of(vec![thread(9, "nginx", None, 99)]), None);
    }
}
