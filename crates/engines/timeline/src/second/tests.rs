//! Tests of scaled shares.

use super::*;

#[test]
fn what_was_taken_is_scaled_and_never_more_than_the_whole() {
    let mut blamed = BlamedTime::default();
    for (length, taken) in [(2_000_000, 1_000_000), (18_000_000, 14_000_000)] {
        blamed.of(length);
        blamed.add(0, taken);
    }
    // The mean is 7.5 ms, which no request of 2 ms can lose.
    assert_eq!(
        (blamed.mean(2), blamed.of_one(2_000_000)),
        ((0, 7_500_000), (0, 1_500_000))
    );
    for _ in 0..2 {
        blamed.of(u64::MAX);
        blamed.add(u64::MAX, u64::MAX);
    }
    assert_eq!(
        (blamed.requests, blamed.of_one(u64::MAX)),
        (4, (u64::MAX, u64::MAX))
    );
    assert_eq!((scaled(u64::MAX, 0, 7), scaled(0, 0, 7)), (7, 0));
}
