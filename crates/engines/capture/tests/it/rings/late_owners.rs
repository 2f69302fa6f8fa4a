//! An owner that a recorder without a CPU wrote long after its first records.

use super::*;

#[test]
fn an_owner_that_is_written_late_has_its_first_records() {
    let mut scene = Scene::new(Era::F, 64, 1);
    let follower = Follower::new(&scene.live.snapshot().bytes).unwrap();
    let lcores = [Lcore(0)];
    let mut tail = follower.tail();
    let mut bytes = Vec::new();
    let mut writer = RingsWriter::begin(&mut bytes).unwrap();
    let mut around =
        OwnerSnapshot::begin(&scene.live.snapshot().bytes, &follower, &mut writer).unwrap();
    scene.live.owner(256, 0x30, 9, "late").unwrap();
    for tsc in [9, 10] {
        let record = testkit::Record::new(SHORT, tsc).int(1).owner(256);
        scene.live.record(0, &record).unwrap();
    }
    for second in 1..5_u64 {
        let mut copied = CopiedSlots::default();
        let file = &scene.live.snapshot().bytes;
        tail.poll(file, &mut copied).unwrap();
        if second == 4 {
            around.refresh(file, &mut writer).unwrap();
        }
        let at = BootNanos(second * 1_000_000_000);
        writer.poll(&copied, &lcores, at).unwrap();
    }
    writer.flush().unwrap();
    let owners: Vec<_> = records(&open(bytes))
        .0
        .into_iter()
        .map(|it| (it.1, it.3))
        .collect();
    // The owner has the records after its begin.
    assert_eq!(owners, [(9, None), (10, Some("late".to_owned()))]);
}
