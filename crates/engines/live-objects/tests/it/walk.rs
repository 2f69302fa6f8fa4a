//! Objects in memories made of data.

use std::cell::RefCell;

use live_memory::{Image, Memory, MemoryError, define_types};
use live_objects::alive::{Addresses, CompiledSpec, Program, Reading, Value, agree, compile};
use objects::{ObjectSpec, parse_specs};
use typeinfo::{Arch, TypeStore};

const LAYOUT: &str = "
struct host { char pad[4]; char name[8]; };
struct item {
    uint32_t number;
    int16_t sign;
    char pad[2];
    struct host *host;
    const char *text;
    struct { struct item *tqe_next; struct item **tqe_prev; } link;
};
struct group { struct { struct item *tqh_first; struct item **tqh_last; } items; struct group *left; struct group *right; };
";

const SPEC: &str = r#"
[[object]]
name = "item"
key = "item"

[[object.alive]]
walk = [
    '$group : tree(uaddr("g_groups"), struct group, left, right)',
    '$item : list($group->items, struct item, link)',
]
check = ['$item->host != 0', 'strncmp($item->host->name, "h", 1) == 0']
values = [
    'item = $item',
    'number = $item->number',
    'sign = $item->sign',
    'host: string = $item->host->name',
    'text: string = $item->text',
    'missing = $item->no_such_member',
]
"#;

const ROOT: u64 = 0x1000;

fn spec() -> ObjectSpec {
    parse_specs(SPEC).unwrap().remove(0)
}

fn types() -> TypeStore<'static> {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, LAYOUT).unwrap();
    types
}

fn globals(name: &str) -> Option<u64> {
    (name == "g_groups").then_some(ROOT)
}

fn compiled() -> CompiledSpec {
    compile(&spec(), &Program::new(types(), &Addresses(globals))).unwrap()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns an item of 40 bytes.
fn item(number: u32, host: u64, text: u64, next: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((-2_i16).to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(words(&[host, text, next, 0]));
    bytes
}

/// Returns two groups: the first has the items 0x5000 and 0x5100; the second, to the right, has
/// 0x5200, which has no host.
fn memory() -> Image {
    Image::new()
        .with(ROOT, &words(&[0x2000]))
        .with(0x2000, &words(&[0x5000, 0, 0, 0x3000]))
        .with(0x3000, &words(&[0x5200, 0, 0, 0]))
        .with(0x4000, b"____host\0garbage")
        .with(0x4100, b"a text\0")
        .with(0x5000, &item(1, 0x4000, 0x4100, 0x5100))
        .with(0x5100, &item(2, 0x4000, 0, 0))
        .with(0x5200, &item(3, 0, 0, 0))
}

fn shown(reading: &Reading) -> Vec<String> {
    let found = agree(reading, reading.clone());
    let text = |values: &Vec<Value>| {
        values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    found
        .objects
        .iter()
        .map(|object| text(&object.values))
        .collect()
}

#[test]
fn objects_are_found_in_lists_and_trees() {
    let compiled = compiled();
    let left_out: Vec<_> = compiled
        .left_out()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(left_out.len(), 1);
    assert!(
        left_out[0].starts_with("line 18: $item->no_such_member: "),
        "{left_out:?}"
    );
    assert_eq!(compiled.names(), ["item", "number", "sign", "host", "text"]);
    let shapes = (0..6)
        .map(|value| (compiled.is_pointer(value), compiled.is_text(value)))
        .collect::<Vec<_>>();
    let (number, pointer, text) = ((false, false), (true, false), (false, true));
    assert_eq!(shapes, [pointer, number, number, text, text, number]);
    let reading = compiled.read(&memory());
    let minus_two = u64::MAX - 1;
    assert_eq!(
        shown(&reading),
        [
            format!("20480 1 {minus_two} host a text"),
            format!("20736 2 {minus_two} host ")
        ]
    );
    assert!(compiled.finds_any(&memory()) && !compiled.finds_any(&Image::new()));
    let counts = agree(&reading, reading.clone()).counts;
    assert_eq!(
        (counts.rejected, counts.rejected_by.as_deref()),
        (1, Some("$item->host != 0"))
    );
}

/// Memory that records the addresses read.
struct Watched {
    memory: Image,
    read: RefCell<Vec<u64>>,
}

impl Memory for Watched {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.read.borrow_mut().push(address);
        self.memory.read(address, into)
    }
}

#[test]
fn the_search_for_any_object_ends_at_the_first() {
    let watched = Watched {
        memory: memory(),
        read: RefCell::default(),
    };
    assert!(compiled().finds_any(&watched));
    let read = watched.read.borrow();
    assert!(read.contains(&0x5008), "the first item's host");
    assert!(
        !read
            .iter()
            .any(|address| (0x5100..0x6000).contains(address)),
        "{read:x?}"
    );
}

#[test]
fn objects_that_change_between_readings_are_left_out() {
    let compiled = compiled();
    let first = compiled.read(&memory());
    let second = compiled.read(&memory().with(0x5100, &item(9, 0x4000, 0, 0)));
    let found = agree(&first, second);
    assert_eq!((found.objects.len(), found.counts.torn), (1, 1));
    // New objects are just as uncertain.
    assert_eq!(agree(&Reading::default(), first).counts.torn, 2);
}

#[test]
fn addresses_are_checked_before_they_are_believed() {
    let compiled =
        CompiledSpec::compile_pointers(&spec(), &Program::new(types(), &Addresses(|_: &str| None)))
            .unwrap();
    let reading = compiled.read_at(&[0x5000, 0x5200, 0x5008, 0x9999, 0, u64::MAX], &memory());
    assert_eq!(shown(&reading).len(), 1);
}

#[test]
fn memory_of_others_is_read_with_bounds() {
    let compiled = compiled();
    let cyclic = compiled.read(&memory().with(0x5100, &item(2, 0x4000, 0, 0x5000)));
    let counts = agree(&cyclic, cyclic.clone()).counts;
    assert_eq!((shown(&cyclic).len(), counts.cut.len()), (2, 1));
    assert!(
        counts.cut[0].ends_with("leads back to itself"),
        "{:?}",
        counts.cut
    );
    // An item is left out if its name does not end within the array, or can't be read.
    let endless = compiled.read(&memory().with(0x4000, b"____hostnamexxxx"));
    assert_eq!(
        (
            endless.len(),
            agree(&endless, endless.clone()).counts.unreadable
        ),
        (0, 2)
    );
    let gone = compiled.read(&Image::new());
    assert_eq!(
        (gone.len(), agree(&gone, gone.clone()).counts.unreadable),
        (0, 1)
    );
    // More items in a list than the limit, none of them with a host.
    let mut items = Vec::new();
    for number in 0..live_objects::alive::MAX_ELEMENTS as u32 {
        items.extend(item(number, 0, 0, 0x10_0000 + 40 * (u64::from(number) + 1)));
    }
    let long = memory()
        .with(0x10_0000, &items)
        .with(0x2000, &words(&[0x10_0000]));
    let reading = compiled.read(&long);
    let counts = agree(&reading, reading.clone()).counts;
    assert_eq!(
        counts.rejected,
        live_objects::alive::MAX_ELEMENTS - 1,
        "the group is an element, too"
    );
    assert!(
        counts.cut[0].ends_with("it has too many elements"),
        "{:?}",
        counts.cut
    );
}

#[test]
fn mismatches_with_the_program_are_explained_by_line() {
    let misfit = |text: &str, with: &str| {
        let spec = parse_specs(&SPEC.replace(text, with)).unwrap().remove(0);
        compile(&spec, &Program::new(types(), &Addresses(globals))).unwrap_err()[0].to_string()
    };
    assert_eq!(
        misfit("g_groups", "g_other"),
        "line 8: $group : tree(uaddr(\"g_other\"), struct group, left, right): the program has no symbol g_other"
    );
    assert!(misfit("struct item, link", "struct itme, link").starts_with("line 9: $item : list("));
    assert!(
        misfit("$item->host != 0", "$other->host != 0")
            .ends_with("no loop has the variable $other")
    );
    assert!(misfit("item = $item'", "item = $item->'").starts_with("line 13: $item->: expected"));
    assert!(
        misfit("list($group->items", "queue($group->items").contains("expected \"$name : list(")
    );
}
