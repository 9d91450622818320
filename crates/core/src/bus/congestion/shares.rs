//! Finds the users with more inputs waiting for an agent than their share of its queue. Pure.

use std::{collections::BTreeMap, sync::Arc};

use super::{InputQueue, backpressure::QueueOverLimit};
use crate::{
    ids::Name,
    sharing::{equal_share, fair_limit},
};

/// The queues of an agent that take no more, where `limit` inputs may wait and `waiting` do; `count_by_user` is asked how many of them
/// are each user's only where that matters.
///
/// A user is refused who has more than three quarters of what the others leave, and more than everybody's equal share, one
/// who comes next counted: whoever has less is let in, however much the others, or what is nobody's, have waiting. Everybody is
/// refused where there is not one for each.
pub fn queues_over_limit(
    agent: &Name,
    limit: usize,
    waiting: usize,
    count_by_user: impl FnOnce() -> BTreeMap<Arc<str>, usize>,
) -> Vec<QueueOverLimit> {
    // Nobody can be over before that.
    if waiting <= fair_limit(limit, 0) {
        return Vec::new();
    }
    let by_user = count_by_user();
    if by_user.len() >= limit {
        return vec![(InputQueue::for_agent(agent), waiting, limit)];
    }
    let equal = equal_share(limit, by_user.len() + 1);
    let shares = by_user.iter().filter_map(|(user, pending)| {
        let share = fair_limit(limit, waiting - pending).max(equal);
        let user = Name::parse(user).ok().filter(|_| *pending > share)?;
        Some((InputQueue::for_user_share(agent, &user), *pending, share))
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_of(limit: usize, own: usize, users: &[(&str, usize)]) -> Vec<(Option<String>, usize)> {
        let agent = Name::parse("busy").unwrap();
        let by_user = users.iter().map(|(user, pending)| (Arc::from(*user), *pending)).collect();
        let waiting = own + users.iter().map(|(_, pending)| pending).sum::<usize>();
        let user = |queue: &InputQueue| match &queue.of {
            super::super::QueueScope::Share(user) => Some(user.to_string()),
            _ => None,
        };
        queues_over_limit(&agent, limit, waiting, || by_user)
            .iter()
            .map(|(queue, _, share)| (user(queue), *share))
            .collect()
    }

    fn only(user: &str, share: usize) -> Vec<(Option<String>, usize)> {
        vec![(Some(user.to_owned()), share)]
    }

    #[test]
    fn a_flood_is_refused_and_whoever_has_less_is_not() {
        assert_eq!(over_of(1_000, 0, &[("ann", 750)]), []);
        assert_eq!(over_of(1_000, 0, &[("ann", 751)]), only("ann", 750));
        // More came in before it was refused: others have their shares all the same.
        assert_eq!(over_of(1_000, 0, &[("ann", 5_000), ("bob", 333)]), only("ann", 501));
        assert_eq!(over_of(1_000, 0, &[("ann", 5_000), ("bob", 334)]).len(), 2);
        assert_eq!(over_of(1_000, 900, &[("ann", 500), ("bob", 1)]), only("ann", 333));
    }

    #[test]
    fn everybody_is_refused_where_there_is_not_one_for_each() {
        assert_eq!(over_of(2, 0, &[("ann", 1), ("bob", 1), ("joe", 1)]), [(None, 2)]);
        assert_eq!(over_of(2, 0, &[("ann", 1)]), []);
    }

    /// However the others fill the queue, and however many they are, who has less than an equal share is let in.
    #[test]
    fn who_has_less_than_an_equal_share_is_never_refused() {
        let names: Vec<String> = (0..40).map(|number| format!("flood-{number}")).collect();
        for floods in 0..40 {
            for own in [0, 50, 100] {
                let mut users: Vec<(&str, usize)> = names[..floods].iter().map(|name| (name.as_str(), 1_000)).collect();
                users.push(("ann", 100 / (floods + 2)));
                let refused = over_of(100, own, &users);
                assert!(
                    !refused.iter().any(|(user, _)| user.as_deref().is_none_or(|it| it == "ann")),
                    "{floods} {own}"
                );
                assert_eq!(refused.len(), floods);
            }
        }
    }
}
