//! Tests of the buckets of histograms.

use super::*;

#[test]
fn buckets_of_powers_of_two_begin_where_the_formula_says() {
    for bits in 0..=5_u8 {
        let index = |n: u64| {
            if n < 1 << bits {
                return 1 + n as u32;
            }
            let k = n.ilog2();
            let shift = k - u32::from(bits);
            1 + ((shift + 1) << bits) + ((n >> shift) - (1 << bits)) as u32
        };
        for n in [
            0,
            1,
            2,
            3,
            4,
            7,
            8,
            31,
            32,
            33,
            100,
            1 << 40,
            (1 << 40) + 12345,
            u64::MAX,
        ] {
            let bucket = index(n);
            assert!(bucket < hist_buckets(bits), "{bits} {n}");
            assert!(hist_bucket(bits, bucket).unwrap() <= n, "{bits} {n}");
            if bucket + 1 < hist_buckets(bits) {
                assert!(hist_bucket(bits, bucket + 1).unwrap() > n, "{bits} {n}");
            }
        }
    }
    assert_eq!(hist_buckets(0), 66);
    assert_eq!(hist_bucket(0, 0), None);
}

#[test]
fn values_are_structures_of_words() {
    assert_eq!(
        [
            size_of::<Extreme>(),
            size_of::<Average>(),
            size_of::<SeriesSlot>(),
            size_of::<Lock>()
        ],
        [16, 16, 24, 8]
    );
    let slot: SeriesSlot = zerocopy::transmute!([4_u64, 1, 7]);
    assert_eq!(
        slot,
        SeriesSlot {
            value: 4,
            meta: 1,
            epoch: 7
        }
    );
    let average: Average = zerocopy::transmute!([10_u64, 2]);
    assert_eq!(
        average,
        Average {
            total: 10,
            count: 2
        }
    );
    let extreme: Extreme = zerocopy::transmute!([9_u64, 1]);
    assert_eq!(
        extreme,
        Extreme {
            value: 9,
            is_set: 1
        }
    );
    assert_eq!(
        [ValueType::None, ValueType::Bool].map(|ty| MapValue::Scalar(ty).size()),
        [8, 8]
    );
}

#[test]
fn linear_buckets_are_counted_with_both_ends() {
    assert_eq!(lhist_buckets(0, 100, 10), 12);
    assert_eq!(lhist_buckets(-5, 5, 3), 6);
}
