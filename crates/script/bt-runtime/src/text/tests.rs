use super::*;
use crate::series::Point;

#[test]
fn values() {
    let of = |text: &str| Value::text(text);
    assert_eq!(
        value(&Value::Array(vec![of("a"), Value::Int(-1)])),
        "[a,-1]"
    );
    assert_eq!(
        value(&Value::Tuple(vec![
            of("a"),
            Value::Tuple(vec![Value::Uint(1), Value::Uint(2)])
        ])),
        "(a, (1, 2))"
    );
    assert_eq!(value(&Value::Record(Vec::new())), "{}");
    assert_eq!(key(&Value::Tuple(vec![of("a"), Value::Uint(2)])), "a, 2");
    assert_eq!(key(&of("(a)")), "(a)");
}

fn zigzag() -> Series {
    let values = [-5, -4, 0, 4, 5];
    let points = values.iter().enumerate().map(|(index, &value)| Point {
        time: format!("01:00:00.{index}00"),
        full_time: String::new(),
        value: Some(value),
    });
    Series {
        points: points.collect(),
        interval: 100_000_000,
    }
}

#[test]
fn a_series_is_a_graph() {
    let expected = "             -5                                                  5
hh:mm:ss.ms  |___________________________________________________|
01:00:00.000 *                         .                         | -5
01:00:00.100 |    *                    .                         | -4
01:00:00.200 |                         *                         | 0
01:00:00.300 |                         .                   *     | 4
01:00:00.400 |                         .                         * 5
             v___________________________________________________v
             -5                                                  5
";
    assert_eq!(series(&zigzag()), expected);
}

#[test]
fn a_series_with_gaps() {
    let mut gaps = zigzag();
    gaps.points.truncate(2);
    gaps.points[0].value = None;
    gaps.points[1].value = Some(9);
    let expected = "             8                                                  10
hh:mm:ss.ms  |___________________________________________________|
01:00:00.000 |                                                   | -
01:00:00.100 |                         *                         | 9
             v___________________________________________________v
             8                                                  10
";
    assert_eq!(series(&gaps), expected);
    assert_eq!(series(&Series::default()), "<no data>");
}
