//! Damages every header word, and truncates files everywhere: the reader always ends, never panics,
//! and never takes much memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::ops::ControlFlow;

use spdk_trace::RawTrace;
use testkit::{Era, Record, Tpoint, TraceBuilder, TraceFile};

/// Allocator that counts the bytes allocated by each thread, and their peak.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends no longer has counters; nothing is measured there.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call is passed unchanged to the system's allocator; the counters don't allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Creates two rings with records of one slot and of three, relations, and owners if the era has
/// them.
fn sample(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(16);
    if era == Era::F {
        t = t.tpoint_count(128).lcore_count(8);
    }
    if era.spec().owners.is_some() {
        t = t.owner_count(5).owner_description_size(40);
        t.owner(1, 1, 5, "owner one").owner(4, 1, 15, "owner four");
    }
    t.owner_type(1, b'o').object_type(2, b'r');
    let new = Tpoint::new(64, "NEW")
        .owner_type(1)
        .object_type(2)
        .new_object();
    let text = Tpoint::new(65, "TEXT")
        .object_type(2)
        .int("n", 4)
        .str("s", 40);
    t.tpoint(new).tpoint(if era == Era::A {
        text
    } else {
        text.relates(2, 0)
    });
    for tsc in 1..=20 {
        t.record(
            1,
            Record::new(64, 10 * tsc)
                .owner(tsc as u16 % 6)
                .object(tsc % 4),
        );
        t.record(
            6,
            Record::new(65, 10 * tsc + 3)
                .object(tsc % 5)
                .int(tsc % 4)
                .str("some text"),
        );
    }
    t
}

/// Memory that a reader may take for each byte of the file; `EXTRA_BYTES` bytes are allowed on top.
const MEMORY_RATIO: isize = 3;
const EXTRA_BYTES: isize = 1 << 20;

/// Reads the bytes and iterates over all records; returns their number, or `None` if nothing could
/// be read.
fn survive(bytes: &[u8], what: &dyn Fn() -> String) -> Option<usize> {
    let before = NOW.get();
    PEAK.set(before);
    let trace = RawTrace::read(bytes);
    let mut records = 0;
    if let Ok(trace) = &trace {
        trace.for_each(|record| {
            records += 1;
            black_box((record.args.iter().count(), record.owner, record.object));
            ControlFlow::Continue(())
        });
        black_box((
            trace.rings().count(),
            trace.owners().all().count(),
            trace.common_start(),
        ));
        assert_eq!(records as u64, trace.record_count(), "{}", what());
    }
    let took = PEAK.get() - before;
    let most = MEMORY_RATIO * bytes.len().cast_signed() + EXTRA_BYTES;
    assert!(
        took <= most,
        "{}: took {took} bytes for a file of {}",
        what(),
        bytes.len()
    );
    trace.is_ok().then_some(records)
}

/// Returns the offsets of all nonzero words of the header and the histories, and of some zero
/// words.
fn words(file: &TraceFile) -> Vec<usize> {
    let layout = &file.layout;
    let mut words: Vec<_> = (0..layout.header.size).step_by(8).collect();
    for lcore in [1, 6] {
        words.extend((layout.history(lcore)..layout.slot(lcore, 0)).step_by(8));
    }
    words.extend(
        layout
            .owners
            .into_iter()
            .flat_map(|at| at..at + 5 * layout.owner_size())
            .step_by(8),
    );
    words.retain(|&at| at + 8 <= file.bytes.len());
    let mut zeros = 0;
    words.retain(|&at| {
        zeros += usize::from(file.u64(at) == 0);
        file.u64(at) != 0 || zeros.is_multiple_of(401)
    });
    words
}

fn damage_every_word(era: Era) {
    let file = sample(era).build_file();
    let whole = survive(&file.bytes, &|| format!("era {era:?}, undamaged"));
    assert_eq!(whole, Some(16 + 5));
    let mut damaged = file.clone();
    let mut unread = 0;
    for at in words(&file) {
        let word = file.u64(at);
        for value in [0, !word, 1 << 63, word ^ 1] {
            damaged.set_u64(at, value);
            unread += usize::from(
                survive(&damaged.bytes, &|| {
                    format!("era {era:?}, {value:#x} at {at:#x}")
                })
                .is_none(),
            );
        }
        damaged.set_u64(at, word);
    }
    // One word affects very little: only era F has some (its sections) without which nothing can be
    // found.
    assert!(
        unread < if era == Era::F { 60 } else { 1 },
        "era {era:?}: {unread} could not be read"
    );
}

fn cut_everywhere(era: Era) {
    let file = sample(era).build_file();
    // Era F's file is small; for the others, some 150 cuts suffice.
    let step = if era == Era::F {
        97
    } else {
        97 * (1 + file.bytes.len() / (97 * 150))
    };
    let mut most = 0;
    for len in (0..file.bytes.len()).step_by(step) {
        let records =
            survive(&file.bytes[..len], &|| format!("era {era:?}, cut at {len}")).unwrap_or(0);
        assert!(
            records >= most,
            "era {era:?}: fewer records of {len} bytes than of fewer"
        );
        most = records;
    }
    assert!(most > 0);
}

macro_rules! sweep {
    ($($cut:ident $words:ident $era:ident),* $(,)?) => {
        $(
            #[test]
            fn $cut() {
                cut_everywhere(Era::$era);
            }

            #[test]
            fn $words() {
                damage_every_word(Era::$era);
            }
        )*
    };
}

sweep! {
    era_a_cut era_a_words A,
    era_b_cut era_b_words B,
    era_c_cut era_c_words C,
    era_d0_cut era_d0_words D0,
    era_d_cut era_d_words D,
    era_e_cut era_e_words E,
    era_f_cut era_f_words F,
}

#[test]
fn counts_that_lie_take_no_memory() {
    for era in Era::ALL {
        let file = sample(era).build_file();
        let mut lying = file.clone();
        for lcore in [1, 6] {
            lying.set_u64(file.layout.num_entries(lcore), u64::MAX);
        }
        for lcore in 0..file.layout.lcore_count as u32 {
            lying.set_u64(
                file.layout.lcore_offset(lcore),
                file.layout.history(1) as u64,
            );
        }
        survive(&lying.bytes, &|| {
            format!("era {era:?}, one offset and endless rings")
        });
    }
    // Era F's file holds the counts itself.
    let file = sample(Era::F).build_file();
    let mut lying = file.clone();
    for section in testkit::Section::ALL {
        lying.set_u16(file.layout.section(section), u16::MAX);
    }
    survive(&lying.bytes, &|| "era F, 65535 of everything".to_owned());
}
