//! Tests of `thread`.

use super::*;

#[test]
fn what_is_oldest_makes_room_in_steps_so_that_what_is_shown_begins_alike() {
    for (limit, bytes, in_steps, most_beginnings) in
        [(200, 10, true, 1_000 / 50 + 1), (200, 10, false, 1_000), (20, 10, true, 1_000), (10_000, 4_000, true, 100)]
    {
        let (mut thread, mut beginnings) = (Thread::default(), BTreeSet::new());
        for at in 1..=1_000 {
            let text = format!("{at} {}", "x".repeat(bytes));
            thread.push(
                at,
                ThreadEntry::Said { turn: Uuid::nil(), text },
                EntryRetention { limit, now: None, in_steps },
            );
            assert!(thread.entries.len() <= limit);
            beginnings.insert(format!("{:?}", thread.entries().next()));
        }
        let is_full = thread.entries.len() * 4 >= limit.min(THREAD_BYTES / bytes) * 3 - 4;
        assert!(is_full && beginnings.len() <= most_beginnings, "{limit} {bytes} {in_steps}: {}", beginnings.len());
    }
}
