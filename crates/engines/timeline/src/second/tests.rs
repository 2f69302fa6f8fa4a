//! Tests of scaled shares.

use super::*;

#[test]
fn blamed_time_is_scaled_and_capped_by_the_whole() {
    let mut blamed = BlamedTime::default();
    for (length, taken) in [(2_000_000, 1_000_000), (18_000_000, 14_000_000)] {
        blamed.count(length);
        blamed.add(0, taken);
    }
    // The mean is 7.5 ms, which no request of 2 ms can lose.
    assert_eq!(
        (blamed.mean(2), blamed.scaled_to(2_000_000)),
        ((0, 7_500_000), (0, 1_500_000))
    );
    for _ in 0..2 {
        blamed.count(u64::MAX);
        blamed.add(u64::MAX, u64::MAX);
    }
    assert_eq!(
        (blamed.requests, blamed.scaled_to(u64::MAX)),
        (4, (u64::MAX, u64::MAX))
    );
    assert_eq!((scaled(u64::MAX, 0, 7), scaled(0, 0, 7)), (7, 0));
}
