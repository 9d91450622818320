//! The users to forget again when a log is restored from an earlier state: data keys that are destroyed on the way, and
//! orders that gateways carry out as soon as they start. Pure.
//!
//! An order is settled when the restored log says that it was carried out. All others are carried out again: the log, its agents
//! and its read models know nothing of it, and keys that were kept before may be back.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::{
    bus::data_keys,
    forget_order::ForgetOrder,
    ids::Name,
    partition,
    signing::{self, EntrySigner, SignedContent},
    subjects::{DATA_KEYS_BUCKET, USER_FORGOTTEN},
};
use kairo_proto::words::ForgettingStep;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::message_line::MessageLine;

/// An order to forget a user, as it is kept outside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenUser {
    pub user: Name,
    pub order_id: Uuid,
}

/// The contents of a file of forgotten users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenUserList {
    pub forgotten: Vec<ForgottenUser>,
}

/// The order that a message of the log says is carried out.
pub fn settled_order_id(line: &MessageLine) -> Option<Uuid> {
    let (subject, _) = partition::split_subject(&line.subject);
    USER_FORGOTTEN.matches(subject).then(|| Uuid::parse_str(line.header("ce-correlationid")?).ok()).flatten()
}

/// The contents of the bucket of data keys: orders, and the newest data key of each user who has one.
#[derive(Clone, Debug, Default)]
pub struct DataKeyBucketState {
    orders: BTreeMap<Name, ForgetOrder>,
    newest: BTreeMap<Name, u32>,
    last: u64,
    signatures: EntrySigner,
    has_signed_orders: bool,
}

impl DataKeyBucketState {
    /// Nothing yet. Only orders count that are signed, where a key is known.
    pub fn new(signatures: &EntrySigner) -> Self {
        Self { signatures: signatures.clone(), ..Self::default() }
    }

    /// Returns true if any order in the bucket bears a signature, even one that does not verify: a restore then needs
    /// `signing.key`.
    pub fn has_signed_orders(&self) -> bool {
        self.has_signed_orders
    }

    /// Takes in the next entry. Keys of users that are not `asked` for need not be kept.
    pub fn apply_entry(&mut self, line: &MessageLine, asked: &BTreeSet<Name>) {
        self.last = line.sequence;
        match data_keys::parse_entry(&line.subject) {
            Some(data_keys::DataKeyEntry::Order(user)) => {
                self.has_signed_orders |= signing::is_signed(&line.data);
                let place = data_keys::order_key(&user);
                if let SignedContent::Written(order) =
                    self.signatures.decode_entry(DATA_KEYS_BUCKET, &place, &line.data)
                {
                    self.orders.insert(user, order);
                }
            }
            Some(data_keys::DataKeyEntry::User(user, generation)) if asked.contains(&user) => {
                let newest = self.newest.entry(user).or_default();
                *newest = (*newest).max(generation);
            }
            Some(data_keys::DataKeyEntry::User(..)) | None => {}
        }
    }

    /// The orders that the bucket knows.
    pub fn forgotten_users(&self) -> ForgottenUserList {
        let forgotten = self
            .orders
            .values()
            .map(|ForgetOrder { user, order_id, .. }| ForgottenUser { user: user.clone(), order_id: *order_id });
        ForgottenUserList { forgotten: forgotten.collect() }
    }

    /// Returns the users to forget again, for a log that says that the `settled` orders are carried out.
    pub fn plan_replay(&self, settled: &BTreeSet<Uuid>, list: &ForgottenUserList) -> ForgetReplay {
        let mut again = BTreeMap::new();
        for (user, order) in &self.orders {
            if !settled.contains(&order.order_id) {
                again.insert(user.clone(), reset_order(order));
            }
        }
        for ForgottenUser { user, order_id } in &list.forgotten {
            let is_known = self.orders.get(user).is_some_and(|order| order.order_id == *order_id);
            if !is_known && !settled.contains(order_id) && !again.contains_key(user) {
                again.insert(user.clone(), listed_order(user, *order_id, self.newest.get(user).copied().unwrap_or(0)));
            }
        }
        ForgetReplay { orders: again, last: self.last, signatures: self.signatures.clone() }
    }
}

/// From where keys were replaced on: whose they were is known, and who has what of them is looked up anew.
fn reset_order(order: &ForgetOrder) -> ForgetOrder {
    let step = match order.step() {
        ForgettingStep::Asked => ForgettingStep::Asked,
        _ => ForgettingStep::Replaced,
    };
    let ForgetOrder { order_id, user, by_whom, generation, .. } = order.clone();
    ForgetOrder { by_whom, generation, step: step.as_str().to_owned(), ..ForgetOrder::new(order_id, user) }
}

fn listed_order(user: &Name, order_id: Uuid, generation: u32) -> ForgetOrder {
    ForgetOrder {
        generation,
        step: ForgettingStep::Replaced.as_str().to_owned(),
        ..ForgetOrder::new(order_id, user.clone())
    }
}

/// Orders to be carried out again.
#[derive(Clone, Debug, Default)]
pub struct ForgetReplay {
    orders: BTreeMap<Name, ForgetOrder>,
    /// The last entry of the bucket.
    last: u64,
    signatures: EntrySigner,
}

impl ForgetReplay {
    pub fn users(&self) -> Vec<String> {
        self.orders.keys().map(Name::to_string).collect()
    }

    /// The entry as it is restored: what the order takes is destroyed before anybody can read it.
    #[must_use]
    pub fn apply_to_line(&self, line: MessageLine) -> MessageLine {
        let data = match data_keys::parse_entry(&line.subject) {
            Some(data_keys::DataKeyEntry::Order(user)) => self.orders.get(&user).map(|order| self.encode_order(order)),
            Some(data_keys::DataKeyEntry::User(user, generation)) => {
                let is_taken =
                    |order: &ForgetOrder| order.step() != ForgettingStep::Asked && generation <= order.generation;
                self.orders.get(&user).filter(|order| is_taken(order)).map(|_| data_keys::destroyed_mark())
            }
            None => None,
        };
        match data {
            Some(data) => MessageLine { data, ..line },
            None => line,
        }
    }

    /// Orders of which the bucket has no entry, behind its last one.
    pub fn missing_order_lines(&self, known: &DataKeyBucketState, now: Timestamp) -> Vec<MessageLine> {
        let added = self.orders.values().filter(|order| !known.orders.contains_key(&order.user));
        let lines = added.zip(self.last + 1..).map(|(order, sequence)| MessageLine {
            sequence,
            stored: now,
            subject: data_keys::order_subject(&order.user),
            headers: Vec::new(),
            data: self.encode_order(order),
        });
        lines.collect()
    }

    fn encode_order(&self, order: &ForgetOrder) -> Vec<u8> {
        self.signatures.encode_entry(DATA_KEYS_BUCKET, &data_keys::order_key(&order.user), order).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::principal::Principal;

    use super::*;

    fn user(name: &str) -> Name {
        Name::parse(name).unwrap()
    }

    fn entry(sequence: u64, key: &str, data: impl Into<Vec<u8>>) -> MessageLine {
        let subject = format!("$KV.KAIRO_DATA_KEYS.{key}");
        MessageLine { sequence, stored: Timestamp::UNIX_EPOCH, subject, headers: Vec::new(), data: data.into() }
    }

    fn order(name: &str, id: u128, step: ForgettingStep, generation: u32) -> MessageLine {
        let order = ForgetOrder::new(Uuid::from_u128(id), user(name));
        let by_whom = Some(Principal::api_key("k1"));
        let order = ForgetOrder { by_whom, generation, step: step.as_str().to_owned(), ..order };
        entry(id as u64 + 10, &format!("order.{name}"), serde_json::to_vec(&order).unwrap())
    }

    fn state_of_keys(lines: &[MessageLine], asked: &[&str]) -> DataKeyBucketState {
        let asked = asked.iter().map(|name| user(name)).collect();
        let mut known = DataKeyBucketState::default();
        lines.iter().for_each(|line| known.apply_entry(line, &asked));
        known
    }

    fn read(line: &MessageLine) -> ForgetOrder {
        serde_json::from_slice(&line.data).unwrap()
    }

    #[test]
    fn an_order_that_the_log_does_not_know_to_be_carried_out_is_carried_out_again() {
        let lines = [order("ann", 1, ForgettingStep::Done, 2), order("bob", 2, ForgettingStep::Done, 1)];
        let known = state_of_keys(&lines, &[]);
        let again = known.plan_replay(&BTreeSet::from([Uuid::from_u128(2)]), &ForgottenUserList::default());
        assert_eq!(again.users(), ["ann"]);
        let renewed = read(&again.apply_to_line(lines[0].clone()));
        assert_eq!((renewed.step(), renewed.generation), (ForgettingStep::Replaced, 2));
        assert_eq!(renewed.by_whom, Some(Principal::api_key("k1")));
        assert_eq!(again.apply_to_line(lines[1].clone()), lines[1], "the log says that it was");
    }

    #[test]
    fn keys_up_to_the_one_of_the_order_are_destroyed_and_newer_ones_stay() {
        let keys = [1, 2, 3].map(|generation| entry(generation, &format!("user.ann.{generation}"), "key"));
        let lines = [&keys[..], &[order("ann", 1, ForgettingStep::Told, 2)]].concat();
        let again = state_of_keys(&lines, &[]).plan_replay(&BTreeSet::new(), &ForgottenUserList::default());
        let applied = keys.clone().map(|key| again.apply_to_line(key).data);
        assert_eq!(applied, [data_keys::destroyed_mark(), data_keys::destroyed_mark(), b"key".to_vec()]);
        let other = entry(9, "user.ann-b.1", "key");
        assert_eq!(again.apply_to_line(other.clone()), other);
        // Of one that was just given it is not known yet which key it takes.
        let asked = [order("ann", 1, ForgettingStep::Asked, 0)];
        let again = state_of_keys(&asked, &[]).plan_replay(&BTreeSet::new(), &ForgottenUserList::default());
        assert_eq!(again.apply_to_line(keys[0].clone()), keys[0]);
    }

    #[test]
    fn a_list_takes_all_keys_of_whom_the_backup_does_not_know_to_be_forgotten() {
        let lines = [entry(1, "user.ann.1", "key"), entry(2, "user.ann.2", "key"), entry(3, "agent.ann.1", "key")];
        let list =
            ForgottenUserList { forgotten: vec![ForgottenUser { user: user("ann"), order_id: Uuid::from_u128(7) }] };
        let known = state_of_keys(&lines, &["ann"]);
        let again = known.plan_replay(&BTreeSet::new(), &list);
        assert_eq!(again.apply_to_line(lines[1].clone()).data, data_keys::destroyed_mark());
        assert_eq!(again.apply_to_line(lines[2].clone()), lines[2]);
        let added = again.missing_order_lines(&known, Timestamp::UNIX_EPOCH);
        assert_eq!((added.len(), added[0].sequence, read(&added[0]).generation), (1, 4, 2));
        assert!(known.plan_replay(&BTreeSet::from([Uuid::from_u128(7)]), &list).users().is_empty(), "it is settled");
    }
}
