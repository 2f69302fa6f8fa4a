//! Tests of the limit on processes.

use super::*;

#[test]
fn nobody_takes_all_places() {
    let (root, a, b) = (Some(0), Some(70_001), Some(70_002));
    // Eight of one user, and one of root comes: the last one goes.
    assert_eq!(gives_way(&[a; 8], root), Some(7));
    assert_eq!(gives_way(&[a, a, root, a], b), Some(3));
    // Nobody gains by more processes.
    assert_eq!(gives_way(&[a; 8], a), None);
    assert_eq!(gives_way(&[a, a, b, root], b), None);
    assert_eq!(
        gives_way(&[root, None, root], a),
        None,
        "root's and those that were named stay"
    );
    assert_eq!(gives_way(&[root, a, None], None), Some(1));
}
