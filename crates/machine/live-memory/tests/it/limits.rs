//! Errors, and memory that is hostile or deep.

use live_memory::{Evaluator, Image, LimitedMemory, Limits, Place, define_types};
use typeinfo::{Arch, NameKind, TypeStore};

use super::{ITEM, STEP, TYPES, check, image, names};

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
