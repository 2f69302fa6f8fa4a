use super::*;

fn node(name: &str, weight: u64, children: Vec<FlameNode>) -> FlameNode {
    FlameNode {
        name: name.to_owned(),
        weight,
        children,
    }
}

fn graph() -> FlameGraph {
    let leaf = |name: &str, weight| node(name, weight, Vec::new());
    let main = vec![leaf("parse", 2), node("exec", 7, vec![leaf("exec", 3)])];
    FlameGraph {
        title: "</script><img src=x>".to_owned(),
        unit: Unit::Count,
        root: node("all", 10, vec![node("main", 10, main)]),
    }
}

#[test]
fn frames_follow_their_callers_the_heaviest_first() {
    let graph = graph();
    let walked = walk(&graph.root);
    let (frames, left_out) = frames(&graph, &walked);
    assert_eq!(frames.names, ["all", "main", "exec", "parse"]);
    assert_eq!(
        (frames.walked, left_out),
        (
            vec![(0, 10, 0), (1, 10, 1), (2, 7, 2), (2, 3, 3), (3, 2, 2)],
            0
        )
    );
}

#[test]
fn a_function_that_calls_itself_counts_once() {
    let graph = graph();
    let table = functions(&graph, &walk(&graph.root));
    let (_, rows) = table.split_once("<tbody>").unwrap();
    assert_eq!(
        rows.lines().next().unwrap(),
        "<tr><td>exec</td><td>7</td><td>70.0%</td><td>7</td><td>70.0%</td></tr>"
    );
}

#[test]
fn narrow_frames_are_left_out() {
    let leaves = (0..150_000).map(|n| node(&format!("f{n}"), 1 + n % 2, Vec::new()));
    let graph = FlameGraph {
        root: node("all", 225_000, leaves.collect()),
        ..FlameGraph::default()
    };
    let walked = walk(&graph.root);
    let (frames, left_out) = frames(&graph, &walked);
    assert_eq!((frames.walked.len(), left_out), (75_001, 75_000));
    assert!(page(&graph).contains("75,000 narrow frames are left out"));
}

#[test]
fn only_its_own_script_and_style_may_run() {
    crate::page::tests::check_policy(&page(&graph()));
    assert!(!page(&graph()).contains("<img"));
}
