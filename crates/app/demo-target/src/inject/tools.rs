//! The tools of the causes, and how each of them delays a reactor.

use std::io;
use std::time::Duration;

use rustix::thread::nanosleep;
use rustix::time::Timespec;

use super::cause::Cause;
use super::interrupts::Interrupts;
use super::packets::Packets;
use super::preemptor::Preemptor;
use super::stopper::Stopper;
use super::truth::Culprit;
use super::watch::Watch;
use crate::clock::ticks;

/// Tools of one reactor's causes, as far as they are wanted and available here.
#[derive(Debug, Default)]
pub(crate) struct Tools<'a> {
    pub(crate) preemptor: Option<Preemptor>,
    pub(crate) packets: Option<&'a Packets>,
    pub(crate) interrupts: Option<Interrupts>,
    pub(crate) stopper: Option<&'a Stopper>,
}

/// Means by which a reactor was delayed.
#[derive(Debug, Default)]
pub(crate) struct DelayMeans {
    pub(crate) by: Option<Culprit>,
    /// Number of a system call, and the number of calls by the reactor.
    pub(crate) syscall: Option<(u32, u32)>,
}

impl Tools<'_> {
    /// Delays the calling thread, that of `reactor`. Returns when the delay is over, or after
    /// `give_up` ticks if it does not come.
    pub(crate) fn delay(
        &mut self,
        cause: Cause,
        reactor: u32,
        watch: &mut Watch,
        length: (Duration, u64),
        give_up: u64,
    ) -> io::Result<DelayMeans> {
        let begin = ticks();
        let (time, length) = length;
        let called = |number: libc::c_long, times| DelayMeans {
            syscall: Some((number as u32, times)),
            by: None,
        };
        let by = |culprit| DelayMeans {
            by: Some(culprit),
            syscall: None,
        };
        match (cause, self) {
            (
                Cause::Preempt,
                Self {
                    preemptor: Some(preemptor),
                    ..
                },
            ) => Ok(by(preemptor.preempt(watch, begin + give_up))),
            (
                Cause::Stop,
                Self {
                    stopper: Some(stopper),
                    ..
                },
            ) => stopper.stop(reactor, watch, begin + give_up).map(by),
            (
                Cause::Softirq,
                Self {
                    packets: Some(packets),
                    ..
                },
            ) => Ok(called(
                libc::SYS_sendto,
                packets.send(watch, begin + length)?,
            )),
            (
                Cause::Irq,
                Self {
                    interrupts: Some(interrupts),
                    ..
                },
            ) => Ok(called(libc::SYS_timerfd_settime, interrupts.fire(watch)?)),
            (Cause::Syscall, _) => {
                sleep(time);
                watch.look();
                Ok(called(libc::SYS_nanosleep, 1))
            }
            _ => {
                while watch.look() < begin + length {
                    std::hint::spin_loop();
                }
                Ok(DelayMeans::default())
            }
        }
    }
}

/// Blocks in `nanosleep`. The standard library's sleep makes another system call in some versions.
fn sleep(time: Duration) {
    let time = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    // A signal that ends it early is in the truth: the gap is shorter.
    let _ = nanosleep(&time);
}
