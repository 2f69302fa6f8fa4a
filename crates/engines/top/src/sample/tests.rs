//! Tests of bars and of sums of samples.

use super::*;
use crate::sample::share::KINDS;

#[test]
fn a_bar_has_the_width_that_it_is_given() {
    let mut share: Share<Part> = Share::default();
    assert_eq!(share.cells(10).iter().sum::<usize>(), 0);
    for (part, nanos) in [(Part::Own, 333), (Part::Calls, 333), (Part::Waited, 334)] {
        share.add(part, nanos);
    }
    assert_eq!(share.cells(10), [3, 3, 4, 0, 0, 0, 0]);
    assert_eq!((share.taken(), share.sum()), (334, 1000));
    for width in 0..50 {
        assert_eq!(share.cells(width).iter().sum::<usize>(), width);
    }
}

#[test]
fn each_kind_has_its_place() {
    for (index, (part, ..)) in Part::ALL.iter().enumerate() {
        assert_eq!(part.index(), index);
    }
    for (index, (phase, ..)) in Phase::ALL.iter().enumerate() {
        assert_eq!(phase.index(), index);
    }
    for (index, (part, ..)) in CpuUse::ALL.iter().enumerate() {
        assert_eq!(part.index(), index);
    }
    assert!(Part::ALL.len() <= KINDS && Phase::ALL.len() <= KINDS && CpuUse::ALL.len() <= KINDS);
}

#[test]
fn stages_are_spent_on_what_their_states_wait_for() {
    let phases = [
        "TCP_REQ_EXECUTING",
        "RDMA_REQ_NEED_BUFFER",
        "TCP_REQ_TX_H_TO_C",
        "RDMA_REQ_COMPLETING",
        "X",
    ];
    let expected = [
        Phase::Device,
        Phase::Buffer,
        Phase::Data,
        Phase::Reply,
        Phase::Target,
    ];
    assert_eq!(phases.map(Phase::from_tpoint), expected);
}
