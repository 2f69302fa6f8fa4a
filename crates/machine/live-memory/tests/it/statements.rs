//! Statements, and expressions that are compiled once.

use bt_lang::Span;
use live_memory::{EvalError, Evaluator, Output, Shape, Value, define_types, run};
use typeinfo::{Arch, TypeStore};

use super::{TYPES, check, image, names};

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

pub(super) fn output(text: &str) -> String {
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
