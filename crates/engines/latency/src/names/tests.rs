//! Tests of shortened names.

use super::*;

#[test]
fn common_parts_of_names_are_left_out() {
    let names = [
        "127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:0",
        "127.0.0.1:51346 nqn.2016-06.io.spdk:cnode2 127.0.0.1:4420 qid:2",
        "-",
    ];
    let short = shortened(&names.map(str::to_owned));
    assert_eq!(
        short.names,
        ["…51292 …cnode1 qid:0", "…51346 …cnode2 qid:2", "-"]
    );
    assert_eq!(
        short.shared,
        ["127.0.0.1:… nqn.2016-06.io.spdk:… 127.0.0.1:4420 …"]
    );
    let short = shortened(&[
        "nqn.io.spdk:c1 qid:1, 0".to_owned(),
        "nqn.io.spdk:c2 qid:2, 0".to_owned(),
    ]);
    assert_eq!(short.names, ["…c1 qid:1", "…c2 qid:2"]);
    assert_eq!(short.shared, ["nqn.io.spdk:… … 0"]);
    for alone in [
        vec![],
        vec!["a b".to_owned()],
        vec!["0".to_owned(), "1".to_owned()],
    ] {
        let short = shortened(&alone);
        assert_eq!((short.names, short.shared), (alone, Vec::new()));
    }
}

#[test]
fn whole_parts_are_left_out_that_distinguish_nothing() {
    let names = [
        "0x7f07c40024b0 thread:3 qid:1 nqn.2016-06.io.spdk:cnode1 nqn.2014-08.com.example:42-",
        "0x7f07c4002890 thread:4 qid:2 nqn.2016-06.io.spdk:cnode1 nqn.2014-08.com.example:42-",
        "0x7f07c4002ff0",
    ];
    let names = names.map(str::to_owned);
    let (left, parts) = without_parts(&names, MAX_OMITTED_PARTS);
    assert_eq!(
        left[..2],
        [
            "qid:1 nqn.2016-06.io.spdk:cnode1",
            "qid:2 nqn.2016-06.io.spdk:cnode1"
        ]
    );
    assert_eq!(
        (&*left[2], parts),
        ("0x7f07c4002ff0", vec!["thread", "host", "address"])
    );
    // Two connections of one queue keep their addresses.
    let names = [names[0].clone(), names[1].replace("qid:2", "qid:1")];
    let (left, parts) = without_parts(&names, MAX_OMITTED_PARTS);
    assert_eq!(left[1], "0x7f07c4002890 qid:1 nqn.2016-06.io.spdk:cnode1");
    assert_eq!(parts, ["thread", "host"]);
    assert_eq!(shortened(&left).names, ["0x7f07c40024b0", "0x7f07c4002890"]);
    let mixed = [
        "0xc0 #1",
        "0xd0 #2",
        "127.0.0.1:51 nqn.io.spdk:c1",
        "127.0.0.1:52 nqn.io.spdk:c2",
    ]
    .map(str::to_owned);
    assert_eq!(
        shortened(&mixed).names,
        ["0xc0 #1", "0xd0 #2", "…51 …c1", "…52 …c2"]
    );
    let threads = ["thread:31 qid:1", "thread:32 qid:2"].map(str::to_owned);
    assert_eq!(shortened(&threads).names, threads);
}

#[test]
fn a_word_that_is_the_beginning_of_another_is_left_as_it_is() {
    let short = shortened(&["nqn.io.spdk:c".to_owned(), "nqn.io.spdk:c1".to_owned()]);
    assert_eq!(short.names, ["…c", "…c1"]);
}
