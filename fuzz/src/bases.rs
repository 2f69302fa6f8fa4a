//! Small valid traces of every era, and where their fields are.

use std::sync::OnceLock;

use testkit::{Era, Record, Section, Tpoint, TraceBuilder, TraceFile};

/// A number in a file.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its offset in bytes.
    pub at: usize,
    /// How many bytes it takes.
    pub width: usize,
}

/// A valid trace to damage.
#[derive(Debug)]
pub struct Base {
    /// The file.
    pub file: TraceFile,
    /// Its fields.
    pub places: Vec<Place>,
}

/// What happened in a trace.
#[derive(Clone, Copy, Debug)]
enum Story {
    /// Few records: rings that are not full.
    Short,
    /// Rings that wrapped.
    Wrapped,
    /// Records with earlier times than those before them, and a writer that was stopped within a record.
    LateAndTorn,
    /// A ring that is copied in more than one piece.
    Large,
}

const STORIES: [Story; 3] = [Story::Short, Story::Wrapped, Story::LateAndTorn];
/// How many small bases there are: each era with each of the stories.
const SMALL: usize = STORIES.len() * Era::ALL.len();
/// The large bases are slow, so that few numbers lead to them: those from here on.
const FIRST_LARGE: u8 = 254;

const LCORES: [u32; 3] = [0, 1, 3];
const TPOINTS: [u16; 4] = [1, 2, 3, 5];
/// Tracepoints that an era F file has room for: also the id of its continuations.
const TPOINTS_F: usize = 6;

/// The numbers of all bases, each once.
pub fn numbers() -> impl Iterator<Item = u8> {
    (0..SMALL as u8).chain(FIRST_LARGE..=u8::MAX)
}

/// A base; any number leads to one.
pub fn base(number: u8) -> &'static Base {
    static SMALL_ONES: [OnceLock<Base>; SMALL] = [const { OnceLock::new() }; SMALL];
    static LARGE_ONES: [OnceLock<Base>; 2] = [const { OnceLock::new() }; 2];
    if let Some(large) = number.checked_sub(FIRST_LARGE) {
        let era = [Era::F, Era::C][usize::from(large)];
        return LARGE_ONES[usize::from(large)].get_or_init(|| make(era, Story::Large));
    }
    let number = usize::from(number) % SMALL;
    let (story, era) = (
        STORIES[number / Era::ALL.len()],
        Era::ALL[number % Era::ALL.len()],
    );
    SMALL_ONES[number].get_or_init(|| make(era, story))
}

fn make(era: Era, story: Story) -> Base {
    let mut trace = TraceBuilder::new(era).slots(if matches!(story, Story::Large) {
        16_384
    } else {
        16
    });
    if era >= Era::D {
        trace = trace.owner_count(4).owner_description_size(24);
    }
    if era == Era::F {
        trace = trace.tpoint_count(TPOINTS_F).lcore_count(5);
    }
    if era == Era::F && matches!(story, Story::LateAndTorn) {
        trace = trace.clear_tsc(1_030);
    }
    declare(&mut trace);
    match story {
        Story::Short => (0..6).for_each(|i| record(&mut trace, i, 1_000 + 10 * i)),
        Story::Wrapped => (0..70).for_each(|i| record(&mut trace, i, 1_000 + 10 * i)),
        Story::LateAndTorn => late_and_torn(&mut trace),
        Story::Large => {
            // The cursor stands in the second piece; what is not recorded here was lost.
            trace.lcore(0).starts_at(16_384 + 8_192 - 100);
            (0..200).for_each(|i| {
                trace.record(0, Record::new(5, 1_000 + i));
            });
        }
    }
    let file = trace.build_file();
    let places = places(&file);
    Base { file, places }
}

fn declare(trace: &mut TraceBuilder) {
    let era = trace.era();
    let relates = |tpoint: Tpoint| {
        if era == Era::A {
            tpoint
        } else {
            tpoint.relates(0x80, 0)
        }
    };
    trace
        .owner_type(0x30, b't')
        .object_type(0x80, b'r')
        .object_type(0x81, b'c');
    trace.tpoint(
        Tpoint::new(1, "NEW")
            .owner_type(0x30)
            .object_type(0x80)
            .new_object()
            .int("qd", 4),
    );
    trace.tpoint(
        Tpoint::new(2, "STEP")
            .owner_type(0x30)
            .object_type(0x80)
            .ptr("qpair")
            .int("n", 4)
            .str("name", 40),
    );
    trace.tpoint(relates(
        Tpoint::new(3, "OTHER")
            .object_type(0x81)
            .new_object()
            .ptr("req"),
    ));
    trace.tpoint(Tpoint::new(5, "PLAIN"));
    if era >= Era::D {
        trace.owner(1, 0x30, 1_005, "127.0.0.1:57992 qid:1");
        trace.owner(2, 0x30, 1_020, "bdev_Malloc0");
    }
    for lcore in LCORES {
        let lcore = trace.lcore(lcore);
        if era >= Era::D0 {
            lcore.thread_name("reactor_0");
        }
    }
}

fn record(trace: &mut TraceBuilder, i: u64, tsc: u64) {
    let lcore = LCORES[i as usize % 2];
    let record = Record::new(TPOINTS[i as usize / 2 % 4], tsc)
        .owner(i as u16 % 4)
        .object(i % 3)
        .size(i as u32);
    let record = match record.tpoint {
        1 => record.int(i),
        2 => record.ptr(i % 3).int(i).str("Malloc0n1 of some length"),
        3 => record.ptr(i % 3),
        _ => record,
    };
    trace.record(lcore, record);
}

fn late_and_torn(trace: &mut TraceBuilder) {
    let step = |tsc| Record::new(2, tsc).object(1).ptr(1).int(2).str("text");
    for (i, tsc) in (0..).zip([1_000, 1_050, 1_020, 1_030, 1_080, 1_085]) {
        record(trace, i, tsc);
    }
    for tsc in [1_060, 1_070, 1_095] {
        trace.record(0, step(tsc));
    }
    trace.torn(0, step(1_100), 2);
}

/// Adds the places of numbers with these widths, one after the other.
fn add_places(places: &mut Vec<Place>, mut at: usize, widths: &[usize]) {
    for &width in widths {
        places.push(Place { at, width });
        at += width;
    }
}

/// Everything that a number stands at and the reader looks at.
fn places(file: &TraceFile) -> Vec<Place> {
    let layout = &file.layout;
    let (mut places, spec) = (Vec::new(), layout.era.spec());
    let mut place = |at, widths: &[usize]| add_places(&mut places, at, widths);
    place(layout.header.tsc_rate, &[8, 8]);
    place(0, &[8]);
    if spec.header.is_none() {
        place(8, &[2, 2, 4]);
        for section in Section::ALL {
            place(layout.section_offset(section), &[8]);
            place(layout.section(section), &[2, 2]);
        }
    }
    layout
        .header
        .num_owners
        .iter()
        .for_each(|&at| place(at, &[2, 2]));
    layout
        .header
        .owner_offset
        .iter()
        .for_each(|&at| place(at, &[8]));
    for lcore in (0..5)
        .chain([layout.lcore_count as u32])
        .filter(|&lcore| lcore as usize <= layout.lcore_count)
    {
        place(layout.lcore_offset(lcore), &[8]);
    }
    place(layout.header.owner_types + 2 * 0x30, &[1, 1]);
    place(layout.header.objects + 2 * 0x80, &[1, 1]);
    for id in TPOINTS {
        place(layout.tpoint(id), &[1]);
        place(layout.tpoint(id) + 24, &[2, 1, 1, 1, 1]);
        for arg in 0..spec.max_args.min(4) {
            place(layout.tpoint(id) + 30 + 16 * arg, &[1]);
            place(layout.tpoint(id) + 30 + 16 * arg + 14, &[1, 1]);
        }
        place(
            layout.tpoint(id) + 30 + 16 * spec.max_args,
            if spec.max_relations > 0 {
                &[1, 1, 1, 1]
            } else {
                &[]
            },
        );
    }
    (0..layout.num_owners as u16).for_each(|id| place(layout.owner(id), &[8, 1, 1]));
    for lcore in LCORES {
        place(layout.num_entries(lcore), &[8, 8]);
        place(layout.next_entry(lcore), &[8]);
        for slot in 0..layout.slots.min(16) as u64 {
            place(layout.slot(lcore, slot), &[8, 2, 2, 4, 8, 8]);
        }
    }
    places
}
