//! Signals that run probes of a script (`self:signal:SIGUSR1`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use errors::usage;
use signal_hook::consts::FORBIDDEN;

/// Caught signals, each with a flag that is set when it comes.
pub(super) struct Signals(Vec<(i32, Arc<AtomicBool>)>);

impl Signals {
    /// Catches these signals from now on. A signal that ends the program still does.
    pub(super) fn catch(signals: Vec<i32>) -> anyhow::Result<Self> {
        let catch = |signal: i32| {
            // SIGKILL and SIGSTOP can't be caught (sigaction(2)); after one of the others the same
            // instruction fails again.
            if FORBIDDEN.contains(&signal) {
                return Err(usage(format!(
                    "self:signal: signal {signal} cannot be caught; SIGUSR1 can"
                )));
            }
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&came)).context("catching signals")?;
            Ok((signal, came))
        };
        // Several probes may share a signal.
        let signals: BTreeSet<i32> = signals.into_iter().collect();
        Ok(Self(
            signals
                .into_iter()
                .map(catch)
                .collect::<anyhow::Result<_>>()?,
        ))
    }

    /// Returns the signals that came since the last call.
    pub(super) fn take(&self) -> impl Iterator<Item = i32> {
        self.0
            .iter()
            .filter(|(_, came)| came.swap(false, Ordering::Relaxed))
            .map(|(signal, _)| *signal)
    }
}
