//! Expressions over a memory made of data, with types from C definitions.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use bt_lang::Span;
use live_memory::{
    EvalError, Evaluator, Global, Globals, Image, LimitedMemory, Limits, Output, Place, Shape,
    Value, define_types, run,
};
use typeinfo::{Arch, NameKind, TypeStore};

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
fn errors_name_their_place() {
    check(
        "g_item.qids",
        "qids: struct item has no member qids: did you mean qid?",
    );
    check("g_itm", "g_itm: there is no variable or enumerator g_itm");
    check(
        "g_item.qid->x",
        "g_item.qid: a value of type unsigned short has no members: expected a struct, a union or a pointer to one",
    );
    check(
        "g_item.tree.rbe_left->qid + 1",
        "g_item.tree.rbe_left->qid: the pointer is NULL: unsigned short at 0x18 can't be read",
    );
    check(
        "g_gone.qid",
        "g_gone.qid: unsigned short: 2 bytes at 0x770018 can't be read: not mapped",
    );
    check("g_unknown", "g_unknown: the value at 0x8000 has no type");
    check("1 / 0", "0: this divides by zero");
    check(
        "g_item.points[2]",
        "2: the index 2 is beyond the array, which has 2 elements",
    );
    check(
        "(struct itm *)0",
        "struct itm: there is no struct itm: did you mean item?",
    );
    check("*5", "5: a value of type int64 is not a pointer");
    check("&g_item.low", "g_item.low: a bit-field has no address");
    check("strr(g_item.name)", "strr: there is no function strr()");
    check("(g_item) - 1", "g_item: there is no typedef g_item");
    check("pid + @x", "pid: there is no variable or enumerator pid");
    check("@x", "@x: this is only for scripts of `dptrace run`");
    check("$q", "$q: there is no variable $q");
}

/// Lists that lead in circles or have no end do no harm: each element counts once, and reads are
/// counted.
#[test]
fn hostile_lists_end() {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, TYPES).unwrap();
    let item = types.find(NameKind::Struct, "item").unwrap().unwrap();
    let head = types.find(NameKind::Struct, "head").unwrap().unwrap();
    let circle = image(&types).with(ITEM + 2 * STEP, &ITEM.to_le_bytes());
    let memory = LimitedMemory::new(&circle, Limits::default());
    let names = names();
    let evaluator = Evaluator::new(&memory, types, &names).with_max_elements(10);
    let head = Place::new(0x8000, head);
    let walk: Vec<_> = evaluator.list(head, "link").unwrap().collect();
    assert_eq!(walk.len(), 4);
    let error = walk.into_iter().nth(3).unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the list leads back to 0x10000 after 3 elements"
    );

    // An array of items, each of which leads to the next: more than are followed.
    let mut long = Image::new().with(0x8000, &ITEM.to_le_bytes());
    for index in 0..20 {
        long.write(ITEM + index * 8, &(ITEM + index * 8 + 8).to_le_bytes());
    }
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, TYPES).unwrap();
    let memory = LimitedMemory::new(
        &long,
        Limits {
            bytes: 1 << 20,
            reads: 16,
        },
    );
    let evaluator = Evaluator::new(&memory, types, &names).with_max_elements(10);
    let mut walk = evaluator.list(head, "link").unwrap();
    assert_eq!(walk.by_ref().flatten().count(), 10);
    assert!(walk.is_cut() && walk.next().is_none());
    assert_eq!(evaluator.take_remarks().len(), 1);
    assert_eq!(walk.element(), item);
    let evaluator = evaluator.with_max_elements(1000);
    let last = evaluator
        .list(head, "link")
        .unwrap()
        .last()
        .unwrap()
        .unwrap_err();
    assert!(last.is_final(), "{last}");
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

/// Output with each value on a line of its own.
#[derive(Default)]
struct Lines(String);

impl Output for Lines {
    fn value(
        &mut self,
        evaluator: &Evaluator<'_>,
        value: &Value,
        expr: Span,
    ) -> Result<(), EvalError> {
        let tree = evaluator.tree(value, Shape::default(), expr)?;
        self.0 += &tree.lines(0);
        self.0 += "\n";
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.0 += text;
    }
}

fn output(text: &str) -> String {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, TYPES).unwrap();
    let (memory, names) = (image(&types), names());
    let evaluator = Evaluator::new(&memory, types, &names);
    let (block, diagnostics) = bt_lang::parse_statements(text);
    assert_eq!(diagnostics, [], "{text}");
    let mut lines = Lines::default();
    if let Err(error) = run(&evaluator, &block, &mut lines) {
        lines.text(&format!("{}: {error}\n", error.span.text(text)));
    }
    lines.0
}

#[test]
fn statements_walk_and_print() {
    assert_eq!(
        output("for ($q : list(g_head, link)) { $q->qid }"),
        "1\n2\n3\n"
    );
    let formatted = "for ($q : list(g_head, link)) { printf(\"%-3d|%4x|%s|%s\\n\", $q->qid, $q->low, $q->name, $q->mode) }";
    assert_eq!(
        output(formatted),
        "1  |   5|item 0|FAST (7)\n2  |   5|item 1|FAST (7)\n3  |   5|item 2|FAST (7)\n"
    );
    assert_eq!(
        output("$n = 0; for ($i : 0..5) { if $i == 3 { break } $n += $i; } print($n)"),
        "3\n"
    );
    assert_eq!(
        output("for ($p : g_item.points) { $p.y } g_item.points"),
        "0\n-2\n[{x = 0, y = 0}, {x = 0, y = -2}]\n"
    );
    assert_eq!(
        output("$p = g_head.tqh_first; while $p != NULL { $p->qid; $p = $p->next }"),
        "1\n2\n3\n"
    );
    assert_eq!(output("(g_item.qid, \"a\")"), "[1, \"a\"]\n");
    assert_eq!(output("let $x = 1; $x++; $x"), "2\n");
    assert_eq!(
        output("while true { }"),
        "true: this loop does not end within 1000000 statements\n"
    );
    assert_eq!(
        output("@x = 1"),
        "@x: there are no maps outside of probes: only variables (`$name`) can be set\n"
    );
    assert_eq!(
        output("printf(\"%d\")"),
        "\"%d\": the format has more directives than the 0 values\n"
    );
}

/// An expression is compiled once, and its variables may have other types in each run.
#[test]
fn compiled_expressions_follow_their_variables() {
    assert_eq!(
        output("for ($x : (1, \"a\", g_item.points)) { $x }"),
        "1\n\"a\"\n[{x = 0, y = 0}, {x = 0, y = -2}]\n"
    );
    let sizes = "for ($p : (&g_item.points[0], &g_item.mode, &g_head)) { sizeof(*$p) }";
    assert_eq!(output(sizes), "8\n4\n16\n");
    assert_eq!(
        output("for ($p : (&g_item, g_item.text)) { $p == 0x10000 ? $p->qid : $p }"),
        "1\n0x9000 \"some text\"\n"
    );
    let rows = "for ($i : 0..3) { g_item.points[$i].y }";
    assert_eq!(
        output(rows),
        "0\n-2\n$i: the index 2 is beyond the array, which has 2 elements\n"
    );
    assert_eq!(
        output("$o = 2; (&g_item.points[0] + $o / 2)->y; g_item.ratio * $o"),
        "-2\n1\n"
    );
    // An error in an arm that is not reached does not count.
    check("1 ? 2 : g_item.fish", "2");
    check(
        "0 ? 2 : g_item.fish",
        "fish: struct item has no member fish",
    );
    check("g_item.qid ?: 5", "1");
    check("g_item.u.parts[g_item.qid]", "119");
    check("*(uint16_t *)(g_item.u.parts + 6)", "4386");
    check("(uint8_t)g_item.negative + g_item.low", "256");
    check("-g_item.negative * ~g_item.mid", "5");
    check("!g_item.qid || g_item.name", "1");
    check("(bool)g_item.qid", "1");
}

/// As deep as the parser goes, on the stack of a test.
#[test]
fn deep_expressions_are_values() {
    check(&format!("{}g_item.qid", "!".repeat(90)), "1");
    check(
        &format!("{}g_item.ratio{}", "-(".repeat(45), ")".repeat(45)),
        "-0.5",
    );
    check(&format!("{}2{}", "1 ? ".repeat(45), " : 3".repeat(45)), "2");
    check(&format!("g_item.qid{}", " + 1".repeat(90)), "91");
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
