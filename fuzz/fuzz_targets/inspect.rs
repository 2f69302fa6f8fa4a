//! Any text as expressions and statements over any bytes as the memory of a process: the text ends at a NUL, the memory follows.
//! Reads are bounded, every place of an error is in the text, and what is shown can go to a terminal.
#![no_main]

use std::sync::OnceLock;

use bt_lang::Span;
use dptrace_fuzz::within_more;
use libfuzzer_sys::fuzz_target;
use live_memory::{
    EvalError, Evaluator, Global, Globals, Image, LimitedMemory, Limits, Memory as _, Mentions,
    Output, Shape, Value, define_types, run,
};
use typeinfo::{Arch, NameKind, TypeStore};

const TYPES: &str = "
enum mode { SLOW, FAST = 7 };
struct item {
    struct { struct item *tqe_next; struct item **tqe_prev; } link;
    struct item *next;
    unsigned low : 3; int mid : 5; unsigned high : 24;
    union { unsigned long whole; unsigned char parts[8]; } u;
    enum mode mode; char name[16]; char *text; double ratio;
    struct { struct item *rbe_left; struct item *rbe_right; } tree;
};
struct head { struct item *tqh_first; };
struct root { struct item *rbh_root; };
struct node { struct node *next; struct node *prev; };
struct ring { struct node node; int value; };
";
/// Where the memory is.
const BASE: u64 = 0x1000;

struct Names;

impl Globals for Names {
    fn find(&self, types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        let kind = match name {
            "item" => "item",
            "head" => "head",
            "root" => "root",
            "ring" => "node",
            _ => return Vec::new(),
        };
        let ty = types.find(NameKind::Struct, kind).ok().flatten();
        vec![Global {
            address: BASE,
            ty,
            source: "a.c".to_owned(),
        }]
    }
}

struct Check {
    lines: usize,
}

impl Output for Check {
    fn value(
        &mut self,
        evaluator: &Evaluator<'_>,
        value: &Value,
        expr: Span,
    ) -> Result<(), EvalError> {
        self.lines += 1;
        if self.lines > 20 {
            return Ok(());
        }
        let tree = evaluator.tree(value, Shape::default(), expr)?;
        let lines = tree.lines(0);
        assert!(
            !lines.contains(|c: char| c.is_control() && c != '\n'),
            "{lines:?}"
        );
        serde_json::from_str::<serde_json::Value>(&tree.json()).expect("JSON");
        Ok(())
    }

    fn text(&mut self, text: &str) {
        assert!(
            !text.contains(|c: char| c.is_control() && !"\n\t".contains(c)),
            "{text:?}"
        );
    }
}

fn types() -> TypeStore<'static> {
    static KNOWN: OnceLock<()> = OnceLock::new();
    let mut types = TypeStore::new(Arch::X86_64);
    let defined = define_types(&mut types, TYPES);
    KNOWN.get_or_init(|| defined.expect("the types are valid"));
    types
}

fuzz_target!(|bytes: &[u8]| {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else {
        return;
    };
    // Loops without an end take their time, which is no fault.
    if text.contains("while") {
        return;
    }
    let (block, diagnostics) = bt_lang::parse_statements(text);
    let mut mentions = Mentions::default();
    mentions.add(&block);
    if diagnostics.iter().any(bt_lang::Diagnostic::is_error) {
        return;
    }
    let image = Image::new().with(BASE, bytes.get(end + 1..).unwrap_or_default());
    let limited = LimitedMemory::new(
        &image,
        Limits {
            bytes: 1 << 20,
            reads: 10_000,
        },
    );
    within_more(bytes.len(), 64, 64 << 20, || {
        let evaluator = Evaluator::new(&limited, types(), &Names).with_max_elements(1000);
        if let Err(error) = run(&evaluator, &block, &mut Check { lines: 0 }) {
            assert!(
                error.span.end as usize <= text.len() && error.span.start <= error.span.end,
                "{error:?}"
            );
            let source = bt_lang::render::Source::new("expression", text);
            let _ = bt_lang::render::render(&error.diagnostic(), &source, false);
        }
        evaluator.take_remarks();
    });
    let spent = limited.spent();
    assert!(spent.bytes <= 1 << 20 && spent.reads <= 10_000);
    let _ = limited.read(BASE, &mut [0]);
});
