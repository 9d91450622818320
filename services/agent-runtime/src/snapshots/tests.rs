//! Tests of `snapshots`.

use serde_json::json;

use super::*;

#[test]
fn of_a_snapshot_of_another_shape_it_is_known_how_far_it_was_read() {
    let log = Uuid::from_u128(7);
    let newer = json!({ "version": 99, "log": log, "through": 40, "state": "of another shape", "more": [1] });
    let (packed, _) = pack(&newer);
    assert!(unpack::<Snapshot>(&packed).is_none());
    assert_eq!(unpack::<Reach>(&packed), Some(Reach { log, through: 40 }));
    let own = Log::default().snapshot(log);
    assert_eq!(unpack::<Reach>(&pack(&own).0), Some(Reach { log, through: own.through }));
}

#[test]
fn a_snapshot_is_of_the_log_that_has_what_it_read_last() {
    let (ann, bob) = (Name::parse("ann").unwrap(), Name::parse("bob").unwrap());
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("ce-id", Uuid::from_u128(1).to_string());
    let there = RawMessage {
        sequence: 40,
        subject: "kairo.agent.ann.message".into(),
        partition: Some(0),
        headers,
        payload: Bytes::new(),
        sealed: None,
        stored: jiff::Timestamp::UNIX_EPOCH,
    };
    let of = |last| Snapshot { through: 40, last, ..Log::default().snapshot(Uuid::nil()) };
    assert!(is_last(&ann, &of(Some(Uuid::from_u128(1))), &there) && is_last(&ann, &of(None), &there));
    assert!(!is_last(&ann, &of(Some(Uuid::from_u128(2))), &there) && !is_last(&bob, &of(None), &there));
}

#[test]
fn a_snapshot_in_parts_is_put_together_unless_one_is_missing_or_of_another() {
    let agent = Name::parse("ann").unwrap();
    let snapshot = Log::default().snapshot(Uuid::from_u128(7));
    let (packed, _) = pack(&snapshot);
    let whole = BTreeMap::from([(key(&agent), Bytes::from([&[WHOLE], &packed[..]].concat()))]);
    assert_eq!(decode(&agent, &whole).unwrap().log, snapshot.log);
    assert!(decode(&Name::parse("bob").unwrap(), &whole).is_none());

    let (first, second) = packed.split_at(packed.len() / 2);
    let head = [&[IN_PARTS, 2], &digest(&packed).as_bytes()[..]].concat();
    let entries = [(key(&agent), &head[..]), (part_key(&agent, 0), first), (part_key(&agent, 1), second)];
    let mut entries: BTreeMap<String, Bytes> =
        entries.into_iter().map(|(key, value)| (key, Bytes::copy_from_slice(value))).collect();
    assert_eq!(decode(&agent, &entries).unwrap().log, snapshot.log);
    entries.insert(part_key(&agent, 1), Bytes::copy_from_slice(first));
    assert!(decode(&agent, &entries).is_none());
    entries.remove(&part_key(&agent, 1));
    assert!(decode(&agent, &entries).is_none());
}
