//! The page `/connections`: percentiles of each stage of each connection that has a place, as JSON.

use serde_json::{Value, json};
use text::json::document;
use text::utc;

use super::groups::{Group, State};
use super::store::Store;

/// Writes it: one object.
pub(crate) fn page(store: &Store) -> String {
    let connections: Vec<Value> = store
        .groups
        .shown()
        .into_iter()
        .map(|group| connection(store, group))
        .collect();
    let mut text = document("serve.connections", &json!({ "connections": connections }));
    text.push('\n');
    text
}

fn connection(store: &Store, group: &Group) -> Value {
    let known = |text: &str| {
        if text.is_empty() {
            Value::Null
        } else {
            text.into()
        }
    };
    let stages: Vec<Value> = group
        .cells
        .iter()
        .map(|(stage, cell)| {
            let recent = cell.recent.all();
            let quantile = |quantile| recent.quantile(quantile);
            json!({
                "stage": store.groups.stage_name(stage),
                "count": recent.count(),
                "mean_ns": recent.sum().checked_div(recent.count()),
                "p50_ns": quantile(0.5),
                "p90_ns": quantile(0.9),
                "p99_ns": quantile(0.99),
                "p99_9_ns": quantile(0.999),
                "max_ns": (recent.count() > 0).then_some(recent.max()),
                "slowest": cell.slowest().map(|slow| json!({
                    "object": slow.name.to_string(), "utc": utc::text(slow.utc.into()), "length_ns": slow.nanos,
                })),
            })
        })
        .collect();
    json!({
        "subnqn": known(&group.key.subnqn),
        "hostnqn": known(&group.key.hostnqn),
        "transport": known(&group.key.transport),
        "requests": group.requests,
        "has_histograms": group.state == State::Detailed,
        "stages": stages,
    })
}
