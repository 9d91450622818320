//! Dispatch of items to the subscribers interested in them: an index from interests to subscribers.
//!
//! The cost of an item depends on the subscribers that want it, not on how many there are in all. A subscriber that
//! does not keep up is dropped, and its subscription ends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kairo_core::ids::Name;
use tokio::sync::mpsc;
use uuid::Uuid;

/// The interest of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    Everything,
    /// Items that concern an agent.
    Agent(Name),
    /// Items caused by one input from outside.
    Correlation(Uuid),
}

/// Hands items to subscribers by their interest; cheap to clone.
#[derive(Debug)]
pub struct Dispatcher<T> {
    /// The most items that may wait for one subscriber.
    waiting: usize,
    index: Arc<Mutex<InterestIndex<T>>>,
}

#[derive(Debug)]
struct InterestIndex<T> {
    /// The position of the last item that was dispatched or skipped.
    position: u64,
    /// The number of subscribers so far, from which each gets its own.
    number: u64,
    subscribers: HashMap<Interest, Vec<QueueSubscriber<T>>>,
    /// The number of distinct correlations among the interests.
    correlations: usize,
}

#[derive(Debug)]
struct QueueSubscriber<T> {
    number: u64,
    queue: mpsc::Sender<T>,
}

impl<T> Clone for Dispatcher<T> {
    fn clone(&self) -> Self {
        Self { waiting: self.waiting, index: self.index.clone() }
    }
}

impl<T: Clone> Dispatcher<T> {
    /// Creates a dispatcher of the items after `position`. At most `waiting` items wait for one subscriber.
    pub fn new(position: u64, waiting: usize) -> Self {
        let index = InterestIndex { position, number: 0, subscribers: HashMap::new(), correlations: 0 };
        Self { waiting, index: Arc::new(Mutex::new(index)) }
    }

    fn lock_index(&self) -> MutexGuard<'_, InterestIndex<T>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to the items of this interest after the position in the returned subscription.
    pub fn subscribe(&self, interest: Interest) -> Subscription<T> {
        let (queue, items) = mpsc::channel(self.waiting);
        let mut index = self.lock_index();
        index.number += 1;
        let number = index.number;
        let position = index.position;
        let subscribers = index.subscribers.entry(interest.clone()).or_default();
        subscribers.push(QueueSubscriber { number, queue });
        if subscribers.len() == 1 && matches!(interest, Interest::Correlation(_)) {
            index.correlations += 1;
        }
        drop(index);
        Subscription { position, items, interest, number, dispatcher: self.clone() }
    }

    /// Skips an item if no subscriber wants it, and returns true then, so that the caller need not decode it. `of_many`
    /// is true if the item may hold other correlations too. Only one task at a time may dispatch.
    pub fn skip_if_unwanted(&self, position: u64, interests: &[Interest], of_many: bool) -> bool {
        let mut index = self.lock_index();
        let wanted = interests.iter().any(|interest| index.subscribers.contains_key(interest));
        if wanted || of_many && index.correlations > 0 {
            return false;
        }
        index.position = position;
        true
    }

    /// Hands an item to every subscriber with one of these interests, which must be distinct.
    pub fn dispatch(&self, position: u64, interests: &[Interest], item: &T) {
        let mut index = self.lock_index();
        index.position = position;
        for interest in interests {
            let Some(subscribers) = index.subscribers.get_mut(interest) else { continue };
            subscribers.retain(|subscriber| subscriber.queue.try_send(item.clone()).is_ok());
            if subscribers.is_empty() {
                index.remove_interest(interest);
            }
        }
    }

    /// Returns true if there are no subscribers.
    pub fn is_idle(&self) -> bool {
        self.lock_index().subscribers.is_empty()
    }
}

impl<T> InterestIndex<T> {
    fn remove_interest(&mut self, interest: &Interest) {
        if self.subscribers.remove(interest).is_some() && matches!(interest, Interest::Correlation(_)) {
            self.correlations -= 1;
        }
    }
}

/// A subscription to a [`Dispatcher`]; dropping it ends it.
#[derive(Debug)]
pub struct Subscription<T> {
    /// The position after which items are handed over.
    pub position: u64,
    items: mpsc::Receiver<T>,
    interest: Interest,
    number: u64,
    dispatcher: Dispatcher<T>,
}

impl<T> Subscription<T> {
    /// Returns the next item; none once the subscriber was dropped because too many items waited for it.
    pub async fn next(&mut self) -> Option<T> {
        self.items.recv().await
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        let mut index = self.dispatcher.index.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(subscribers) = index.subscribers.get_mut(&self.interest) else { return };
        subscribers.retain(|subscriber| subscriber.number != self.number);
        if subscribers.is_empty() {
            index.remove_interest(&self.interest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: u128) -> Interest {
        Interest::Correlation(Uuid::from_u128(number))
    }

    fn agent(name: &str) -> Interest {
        Interest::Agent(Name::parse(name).unwrap())
    }

    fn received(subscription: &mut Subscription<u64>) -> Vec<u64> {
        std::iter::from_fn(|| subscription.items.try_recv().ok()).collect()
    }

    #[test]
    fn everybody_is_handed_what_they_want_and_nothing_else() {
        let dispatcher = Dispatcher::new(0, 9);
        let mut all = dispatcher.subscribe(Interest::Everything);
        let mut bob = dispatcher.subscribe(agent("bob"));
        let [mut one, mut again, mut two] = [1, 1, 2].map(|number| dispatcher.subscribe(turn(number)));
        for (item, about, number) in [(1, "bob", 1), (2, "joe", 2), (3, "bob", 3)] {
            dispatcher.dispatch(item, &[Interest::Everything, agent(about), turn(number)], &item);
        }
        assert_eq!((received(&mut all), received(&mut bob)), (vec![1, 2, 3], vec![1, 3]));
        assert_eq!([&mut one, &mut again, &mut two].map(received), [vec![1], vec![1], vec![2]]);
        drop(one);
        dispatcher.dispatch(4, &[turn(1)], &4);
        assert_eq!(received(&mut again), [4]);
    }

    #[test]
    fn what_nobody_wants_is_passed_over() {
        let dispatcher = Dispatcher::<u64>::new(0, 9);
        assert!(dispatcher.is_idle() && dispatcher.skip_if_unwanted(1, &[Interest::Everything, turn(1)], true));
        let one = dispatcher.subscribe(turn(1));
        assert_eq!(one.position, 1);
        // A message may be of many turns: what it holds of others shows only when it is read.
        assert!(
            !dispatcher.skip_if_unwanted(2, &[turn(1)], false) && !dispatcher.skip_if_unwanted(2, &[turn(2)], true)
        );
        assert!(dispatcher.skip_if_unwanted(2, &[turn(2), agent("bob")], false));
        drop(one);
        assert!(dispatcher.skip_if_unwanted(3, &[turn(1)], true) && dispatcher.is_idle());
    }

    #[tokio::test]
    async fn whoever_does_not_take_what_they_are_handed_is_let_go_and_finds_out() {
        let dispatcher = Dispatcher::new(0, 2);
        let mut slow = dispatcher.subscribe(turn(1));
        for item in 1..=4 {
            dispatcher.dispatch(item, &[turn(1)], &item);
        }
        assert!(dispatcher.is_idle());
        // It comes back while it is still reading what it has.
        let mut again = dispatcher.subscribe(turn(1));
        dispatcher.dispatch(5, &[turn(1)], &5);
        assert_eq!((slow.next().await, slow.next().await, slow.next().await), (Some(1), Some(2), None));
        drop(slow);
        assert_eq!((again.position, again.next().await), (4, Some(5)));
    }
}
