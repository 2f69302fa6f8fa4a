//! SIGINT, SIGTERM and SIGHUP as a wish to stop: the command ends what it does and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

/// Whether to stop.
#[derive(Clone)]
pub(crate) struct Interrupt {
    wished: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches the signals from now on. Once a process.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let wished = Arc::new(AtomicBool::new(false));
        let handler = Arc::clone(&wished);
        ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed)).context("catching SIGINT")?;
        Ok(Self { wished })
    }

    /// One that never comes.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self { wished: Arc::new(AtomicBool::new(false)) }
    }

    /// Whether one came.
    pub(crate) fn is_wished(&self) -> bool {
        self.wished.load(Ordering::Relaxed)
    }
}
