use std::time::Duration;

use futures::{FutureExt, future::join_all};

use super::*;

fn key(id: &str) -> QuotaHolder {
    QuotaHolder::for_group(id)
}

fn user(key: &str, user: &str) -> QuotaHolder {
    QuotaHolder::for_group(key).with_member(Some(user))
}

/// Takes all that the holder gets.
fn flood(places: &PermitPool, holder: &QuotaHolder) -> Vec<Permit> {
    std::iter::from_fn(|| places.try_acquire_revocable(holder).ok()).collect()
}

#[test]
fn nobody_takes_the_places_of_others() {
    let places = PermitPool::new(8, 8);
    let first = flood(&places, &key("a"));
    assert_eq!(first.len(), 6);
    assert_eq!(places.try_acquire(&key("a")).unwrap_err(), NoPermit::Own);
    let second = [places.try_acquire(&key("b")).unwrap(), places.try_acquire(&key("b")).unwrap()];
    assert_eq!(places.try_acquire(&key("a")).unwrap_err(), NoPermit::All);
    drop((first, second));
    assert_eq!((places.in_use(), places.available()), (0, 8));
    assert!(places.0.lock_state().is_forgotten());
}

#[test]
fn a_limit_of_each_holds_as_well() {
    let places = PermitPool::new(3, 2);
    let held = [places.try_acquire(&key("a")).unwrap(), places.try_acquire(&key("a")).unwrap()];
    assert_eq!(places.try_acquire(&key("a")).unwrap_err(), NoPermit::Own);
    assert!(places.try_acquire(&key("b")).is_ok());
    drop(held);
    assert_eq!(places.in_use(), 0);
}

/// A holder below its equal share always gets a place, whatever and however many the others hold.
#[test]
fn who_holds_less_than_their_share_is_never_refused() {
    for floods in 1..20 {
        let places = PermitPool::new(100, 50);
        let mut held: Vec<Vec<Permit>> =
            (0..floods).map(|number| flood(&places, &key(&format!("flood {number}")))).collect();
        let share = 100 / (floods + 1);
        let mut own = Vec::new();
        for number in 0..share.min(50) {
            own.push(
                places.try_acquire_revocable(&key("late")).unwrap_or_else(|why| panic!("{floods} {number}: {why:?}")),
            );
        }
        assert!(places.in_use() <= 100);
        let revoked =
            held.iter().flatten().filter(|permit| permit.wait_until_revoked().now_or_never().is_some()).count();
        held.clear();
        assert_eq!(places.in_use(), own.len(), "{revoked} of {floods} were given back twice or not at all");
        assert!(own.iter().all(|permit| permit.wait_until_revoked().now_or_never().is_none()));
    }
}

#[test]
fn users_of_one_key_have_shares_of_it() {
    let places = PermitPool::new(100, 40);
    let flooded = flood(&places, &user("key", "flood"));
    assert_eq!(flooded.len(), 30);
    let own: Vec<Permit> = (0..20).map(|_| places.try_acquire_revocable(&user("key", "ann")).unwrap()).collect();
    assert_eq!(places.try_acquire_revocable(&user("key", "ann")).unwrap_err(), NoPermit::Own);
    // Another key is none the worse for it.
    assert_eq!(flood(&places, &key("other")).len(), 40);
    assert_eq!(flooded.iter().filter(|permit| permit.wait_until_revoked().now_or_never().is_some()).count(), 10);
    drop(own);
}

#[test]
fn what_is_held_for_good_is_not_taken_back() {
    let places = PermitPool::new(2, 2);
    let held = [places.try_acquire(&key("a")).unwrap(), places.try_acquire(&key("a")).unwrap()];
    assert_eq!(places.try_acquire(&key("b")).unwrap_err(), NoPermit::All);
    assert!(held.iter().all(|permit| permit.wait_until_revoked().now_or_never().is_none()));
}

/// Of the many waiters of one holder, one at most goes before another holder's first.
#[tokio::test]
async fn holders_are_served_in_turn() {
    let places = PermitPool::with_capacity(1);
    let first = places.acquire(&key("flood")).await;
    let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
    let wait = |name: &'static str| {
        let places = places.clone();
        let order = order.clone();
        async move {
            let permit = places.acquire(&key(name)).await;
            let _ = order.send(name);
            drop(permit);
        }
    };
    let flood: Vec<_> = (0..100).map(|_| tokio::spawn(wait("flood"))).collect();
    tokio::task::yield_now().await;
    let late: Vec<_> = (0..2).map(|_| tokio::spawn(wait("late"))).collect();
    tokio::task::yield_now().await;
    drop(first);
    join_all(flood.into_iter().chain(late)).await;
    let served: Vec<_> = std::iter::from_fn(|| served.try_recv().ok()).collect();
    assert_eq!(served.len(), 102);
    assert_eq!(served[..4], ["late", "flood", "late", "flood"]);
}

/// One holder never has all of many places, so that another's first waits for nobody.
#[tokio::test]
async fn another_holders_first_does_not_wait() {
    let places = PermitPool::with_capacity(8);
    let own = key("flood");
    let flood: Vec<Permit> = join_all((0..6).map(|_| places.acquire(&own))).await;
    assert!(places.acquire(&key("flood")).now_or_never().is_none());
    assert!(places.acquire(&key("late")).now_or_never().is_some());
    drop(flood);
    assert!(places.0.lock_state().is_forgotten());
}

#[tokio::test]
async fn who_waits_no_more_takes_nothing() {
    let places = PermitPool::with_capacity(1);
    let held = places.acquire(&key("a")).await;
    let gone = tokio::time::timeout(Duration::from_millis(1), places.acquire(&key("b"))).await;
    assert!(gone.is_err());
    drop(held);
    assert!(places.acquire(&key("c")).now_or_never().is_some());
    assert!(places.0.lock_state().is_forgotten());
}

/// A request for many places is not starved by requests for few, and never waits for more places than there are.
#[tokio::test]
async fn many_places_are_waited_for_in_turn() {
    let places = PermitPool::with_capacity(4);
    let small = [places.acquire(&key("a")).await, places.acquire(&key("a")).await];
    let other = key("b");
    let mut large = Box::pin(places.acquire_many(&other, 9));
    assert!(futures::poll!(&mut large).is_pending());
    assert!(places.acquire(&key("a")).now_or_never().is_none());
    drop(small);
    assert!(large.now_or_never().is_some());
}

#[tokio::test]
async fn it_is_known_when_all_were_given_back() {
    let places = PermitPool::with_capacity(4);
    places.wait_until_idle().await;
    let held = places.try_acquire(&key("a")).unwrap();
    let mut returned = Box::pin(places.wait_until_idle());
    assert!(futures::poll!(&mut returned).is_pending());
    drop(held);
    returned.await;
}
