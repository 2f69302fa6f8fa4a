//! A hundred probes of the provider `demo100`, to measure how long it takes to attach to many.

use probe::probe;

macro_rules! hundred {
    ($($name:ident),* $(,)?) => {
        /// Names of the probes.
        pub(crate) const NAMES: [&str; 100] = [$(stringify!($name)),*];

        /// Hits each of them once, with the TSC and its number.
        #[inline(never)]
        pub(crate) fn hit_each(mut stamp: impl FnMut() -> u64) {
            let mut number = 0_u64;
            $(
                probe!(demo100, $name, stamp(), number);
                number += 1;
            )*
            std::hint::black_box(number);
        }
    };
}

hundred! {
    probe_000, probe_001, probe_002, probe_003, probe_004, probe_005, probe_006, probe_007, probe_008, probe_009,
    probe_010, probe_011, probe_012, probe_013, probe_014, probe_015, probe_016, probe_017, probe_018, probe_019,
    probe_020, probe_021, probe_022, probe_023, probe_024, probe_025, probe_026, probe_027, probe_028, probe_029,
    probe_030, probe_031, probe_032, probe_033, probe_034, probe_035, probe_036, probe_037, probe_038, probe_039,
    probe_040, probe_041, probe_042, probe_043, probe_044, probe_045, probe_046, probe_047, probe_048, probe_049,
    probe_050, probe_051, probe_052, probe_053, probe_054, probe_055, probe_056, probe_057, probe_058, probe_059,
    probe_060, probe_061, probe_062, probe_063, probe_064, probe_065, probe_066, probe_067, probe_068, probe_069,
    probe_070, probe_071, probe_072, probe_073, probe_074, probe_075, probe_076, probe_077, probe_078, probe_079,
    probe_080, probe_081, probe_082, probe_083, probe_084, probe_085, probe_086, probe_087, probe_088, probe_089,
    probe_090, probe_091, probe_092, probe_093, probe_094, probe_095, probe_096, probe_097, probe_098, probe_099,
}
