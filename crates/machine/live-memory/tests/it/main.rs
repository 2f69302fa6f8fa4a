//! Expressions over a memory made of data, with types from C definitions.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod limits;
mod statements;

use live_memory::{Evaluator, Global, Globals, Image, Value, define_types};
use typeinfo::{Arch, NameKind, TypeStore};

use statements::output;

const TYPES: &str = "
enum mode { SLOW, FAST = 7 };
typedef unsigned int u_int_alias;
struct point { int x; int y; };
struct item {
    struct { struct item *tqe_next; struct item **tqe_prev; } link;
    struct item *next;
    unsigned short qid;
    short negative;
    unsigned int low : 3; int mid : 5; unsigned int high : 24;
    union { unsigned long whole; unsigned char parts[8]; } u;
    enum mode mode;
    char name[16];
    struct point points[2];
    struct { struct item *rbe_left; struct item *rbe_right; } tree;
    char *text;
    double ratio;
};
struct head { struct item *tqh_first; struct item **tqh_last; };
struct root { struct item *rbh_root; };
struct node { struct node *next; struct node *prev; };
struct ring { struct node node; int value; };
";

struct Names(Vec<(&'static str, u64, &'static str, &'static str)>);

impl Globals for Names {
    fn find(&self, types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        let fits = |row: &&(&str, u64, &str, &str)| {
            name == row.0 || name == format!("{}:{}", row.3, row.0)
        };
        let of = |row: &(&str, u64, &str, &str)| Global {
            address: row.1,
            ty: types.find(NameKind::Struct, row.2).unwrap(),
            source: row.3.to_owned(),
        };
        self.0.iter().filter(fits).map(of).collect()
    }

    fn nearest(&self, _name: &str) -> Vec<String> {
        vec!["g_head".to_owned()]
    }
}

const ITEM: u64 = 0x1_0000;
const STEP: u64 = 0x200;

/// Makes a memory with three items in a list, the second of them the root of a tree, and a ring of
/// two.
fn image(types: &TypeStore<'_>) -> Image {
    let item = types.find(NameKind::Struct, "item").unwrap().unwrap();
    let at = |path: &str| types.path(item, path).unwrap().byte_offset();
    let mut image = Image::new();
    let size = types.size_of(item).unwrap() as usize;
    for index in 0..3_u64 {
        let base = ITEM + index * STEP;
        image.write(base, &vec![0; size]);
        let next = if index == 2 { 0 } else { base + STEP };
        image.write(base + at("link.tqe_next"), &next.to_le_bytes());
        image.write(base + at("next"), &next.to_le_bytes());
        image.write(base + at("qid"), &(index as u16 + 1).to_le_bytes());
        image.write(base + at("negative"), &(-5_i16).to_le_bytes());
        image.write(
            base + at("low"),
            &(0b101_u32 | 0b11110 << 3 | 9 << 8).to_le_bytes(),
        );
        image.write(base + at("u"), &0x1122_3344_5566_7788_u64.to_le_bytes());
        image.write(base + at("mode"), &7_u32.to_le_bytes());
        image.write(base + at("name"), format!("item {index}").as_bytes());
        image.write(base + at("points[1].y"), &(-2_i32).to_le_bytes());
        image.write(base + at("text"), &0x9000_u64.to_le_bytes());
        image.write(base + at("ratio"), &0.5_f64.to_le_bytes());
    }
    image.write(ITEM + STEP + at("tree.rbe_left"), &ITEM.to_le_bytes());
    image.write(
        ITEM + STEP + at("tree.rbe_right"),
        &(ITEM + 2 * STEP).to_le_bytes(),
    );
    image.write(0x8000, &ITEM.to_le_bytes());
    image.write(0x8008, &[0; 8]);
    image.write(0x8100, &(ITEM + STEP).to_le_bytes());
    // A ring of two: head at 0x8200, then elements at 0x8300 and 0x8400.
    for (at, next) in [(0x8200_u64, 0x8300_u64), (0x8300, 0x8400), (0x8400, 0x8200)] {
        image.write(at, &next.to_le_bytes());
        image.write(at + 8, &[0; 8]);
        image.write(at + 16, &(at as u32).to_le_bytes());
    }
    image.with(0x9000, b"some text\0")
}

fn names() -> Names {
    Names(vec![
        ("g_item", ITEM, "item", "a.c"),
        ("g_head", 0x8000, "head", "a.c"),
        ("g_root", 0x8100, "root", "a.c"),
        ("g_ring", 0x8200, "node", "a.c"),
        ("g_twice", 0x8000, "head", "a.c"),
        ("g_twice", ITEM, "item", "b.c"),
        ("g_unknown", 0x8000, "", "a.c"),
        ("g_gone", 0x77_0000, "item", "a.c"),
    ])
}

/// Returns the value of an expression as text, or its error with the part to blame.
fn value(text: &str) -> String {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, TYPES).unwrap();
    let (memory, names) = (image(&types), names());
    let evaluator = Evaluator::new(&memory, types, &names);
    let expr = bt_lang::parse_expression(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    match evaluator.eval(&expr) {
        Ok(value) => shown(&evaluator, &value),
        Err(error) => format!("{}: {error}", error.span.text(text)),
    }
}

fn shown(evaluator: &Evaluator<'_>, value: &Value) -> String {
    match value {
        Value::Int { value, ty } if evaluator.types().display(*ty).contains('*') => {
            format!("{value:#x}")
        }
        Value::Int { value, .. } => value.to_string(),
        Value::Float { value, .. } => value.to_string(),
        Value::Place(place) => format!(
            "{} at {:#x}",
            evaluator.types().display(place.ty),
            place.address
        ),
        Value::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        Value::Bytes(bytes) => format!("{bytes:02x?}"),
        Value::Tuple(parts) => {
            format!(
                "({})",
                parts
                    .iter()
                    .map(|part| shown(evaluator, part))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        Value::Nothing => "nothing".to_owned(),
    }
}

fn check(text: &str, expected: &str) {
    assert_eq!(value(text), expected, "{text}");
}

#[test]
fn members_elements_and_pointers() {
    check("g_item.qid", "1");
    check("g_head.tqh_first->qid", "1");
    check("g_head.tqh_first->next->next->qid", "3");
    check("g_head->tqh_first.next.qid", "2");
    check("(*g_head.tqh_first).negative", "-5");
    check("g_item", "struct item at 0x10000");
    check("*&g_item.qid", "1");
    check("&g_item.next->next", "0x10210");
    check("g_item.points[1].y", "-2");
    check("g_item.points[1]", "struct point at 0x10044");
    check("g_head.tqh_first[0].qid", "1");
    check("*g_item.u.parts", "136");
    check("g_item.u.parts[7]", "17");
    check("g_item.u.whole", "1234605616436508552");
    check("g_item.low", "5");
    check("g_item.mid", "-2");
    check("g_item.high", "9");
    check("g_item.ratio", "0.5");
    check("g_item.mode", "7");
    check("g_item.mode == FAST", "1");
}

#[test]
fn casts_sizes_and_numbers() {
    check("((struct item *)g_head.tqh_first)->qid", "1");
    check("((struct item *)0x10200)->qid", "2");
    check("(char)200", "-56");
    check("(u_int_alias)-1", "4294967295");
    check("(uint8_t)0x1ff + 1", "256");
    check("sizeof(struct point)", "8");
    check("sizeof(g_item.name)", "16");
    check("sizeof(u_int_alias)", "4");
    check("offsetof(struct point, y)", "4");
    check("1 + 2 * 3 == 7 && !0", "1");
    check("-7 / 2", "-3");
    check("-7 % 3", "-1");
    check("-1 >> 60", "-1");
    check("1 << 63", "-9223372036854775808");
    check("0xffffffffffffffff + 1", "0");
    check("g_item.ratio * 4", "2");
    check("g_item.qid > 5 ? 1 : 2", "2");
    check("(struct item *)0x10200 - (struct item *)&g_item", "4");
    check("(int *)0x10 + 2", "0x18");
    check("NULL == g_item.tree.rbe_left", "1");
}

#[test]
fn texts_and_buffers() {
    check("str(g_item.name)", "\"item 0\"");
    check("str(g_item.text)", "\"some text\"");
    check("str(g_item.text, 4)", "\"some\"");
    check("g_item.name == \"item 0\"", "1");
    check("str(g_item.text) != \"x\"", "1");
    check("buf(g_item.text, 3)", "[73, 6f, 6d]");
    check("len(str(g_item.text))", "9");
    check("len(g_item.points)", "2");
    check(
        "g_item.text == \"x\"",
        "g_item.text == \"x\": a text can only be compared with a text",
    );
}

#[test]
fn lists_and_trees() {
    check("list(g_head, link)", "(0x10000, 0x10200, 0x10400)");
    check("list(&g_head, link)", "(0x10000, 0x10200, 0x10400)");
    check(
        "list(g_head.tqh_first, next)",
        "(0x10000, 0x10200, 0x10400)",
    );
    check("list(g_head.tqh_first->next, link)", "(0x10200, 0x10400)");
    check("list(g_root, tree)", "(0x10000, 0x10200, 0x10400)");
    check(
        "list(g_ring, typeof(struct ring), node)",
        "(0x8300, 0x8400)",
    );
    check("list(g_ring, typeof(struct ring), node)[1]->value", "33792");
    check("len(list(g_head, link))", "3");
    check(
        "container_of(&g_item.next, typeof(struct item), next)",
        "0x10000",
    );
    check(
        "list(g_item, link)",
        "g_item: struct item is not the head of a list",
    );
    check(
        "list(g_head, qid)",
        "qid: unsigned short is not a struct or union",
    );
    check(
        "list(g_head, lnk)",
        "lnk: struct item has no member lnk: did you mean link?",
    );
}

#[test]
fn names_that_several_have_are_chosen_by_file() {
    check(
        "g_twice",
        "g_twice: there are 2 variables g_twice, in a.c, b.c",
    );
    check("uaddr(\"b.c:g_twice\")->qid", "1");
    check("uaddr(\"g_item\")", "0x10000");
    check(
        "*(struct head *)uaddr(\"g_unknown\")",
        "struct head at 0x8000",
    );
}

#[test]
fn variables_and_places_are_bound_from_outside() {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, TYPES).unwrap();
    let (memory, names) = (image(&types), names());
    let evaluator = Evaluator::new(&memory, types, &names);
    let head = evaluator
        .place(&bt_lang::parse_expression("g_head").unwrap())
        .unwrap();
    let qids = evaluator.list(head, "link").unwrap().map(|place| {
        evaluator.bind("$q", evaluator.pointer(place.unwrap()));
        evaluator
            .eval(&bt_lang::parse_expression("$q->qid").unwrap())
            .unwrap()
            .number()
            .unwrap()
    });
    assert_eq!(qids.collect::<Vec<_>>(), [1, 2, 3]);
    let first = evaluator
        .place(&bt_lang::parse_expression("g_head.tqh_first").unwrap())
        .unwrap();
    assert_eq!(first.address, ITEM);
    let y = evaluator.field(first, "points").unwrap();
    let offset = evaluator
        .types()
        .path(first.ty, "points")
        .unwrap()
        .byte_offset();
    assert_eq!(y.address, ITEM + offset);
}

#[test]
fn a_struct_is_a_tree() {
    let text = output("g_item");
    let expected = "\
{
    link = {tqe_next = 0x10200, tqe_prev = NULL}
    next = 0x10200
    qid = 1
    negative = -5
    low = 5
    mid = -2
    high = 9
    u = {whole = 1234605616436508552, parts = [88 77 66 55 44 33 22 11]}
    mode = FAST (7)
    name = \"item 0\"
    points = [{x = 0, y = 0}, {x = 0, y = -2}]
    tree = {rbe_left = NULL, rbe_right = NULL}
    text = 0x9000 \"some text\"
    ratio = 0.5
}
";
    assert_eq!(text, expected);
}
