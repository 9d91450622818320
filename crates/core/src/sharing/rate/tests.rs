use super::*;

const RATE: u32 = 10;
const BURST: u32 = 40;

fn of(user: &str) -> QuotaHolder {
    QuotaHolder::for_group("key").with_member(Some(user))
}

#[test]
fn one_alone_has_all_of_it_and_no_more() {
    let rates = SharedRateLimiter::new(RATE, BURST);
    let begun = Instant::now();
    let holder = QuotaHolder::for_group("key");
    for _ in 0..BURST {
        assert_eq!(rates.count_request(&holder, begun), Ok(()));
    }
    let wait = rates.count_request(&holder, begun).unwrap_err();
    assert!(wait > Duration::from_millis(99) && wait <= Duration::from_millis(101), "{wait:?}");
    assert_eq!(rates.count_request(&holder, begun + wait), Ok(()));
    assert_eq!(rates.count_request(&QuotaHolder::for_group("other"), begun), Ok(()));
}

/// However much one user of a key sends, others who send less than their share of the rate are never refused.
#[test]
fn who_keeps_below_their_share_is_never_refused() {
    for others in 1..=8_u32 {
        let rates = SharedRateLimiter::new(RATE, BURST);
        let begun = Instant::now();
        let mut accepted_of_flood = 0;
        for millisecond in 0..20_000_u64 {
            let now = begun + Duration::from_millis(millisecond);
            accepted_of_flood += u32::from(rates.count_request(&of("flood"), now).is_ok());
            // All of them together a little less than what is left when everybody has the same.
            let every = u64::from(1_000 * (others + 1) / RATE) + 1;
            for other in 0..others {
                if (millisecond + u64::from(other) * 7) % every == 0 {
                    assert_eq!(
                        rates.count_request(&of(&other.to_string()), now),
                        Ok(()),
                        "{other} of {others} at {millisecond}"
                    );
                }
            }
        }
        // And the flood gets what is left of it: nothing is held back.
        let left = 20 * RATE / (others + 1);
        assert!(accepted_of_flood >= left, "{accepted_of_flood} of {left}");
        assert!(accepted_of_flood <= 20 * RATE + BURST, "{accepted_of_flood}");
    }
}

#[test]
fn what_is_found_to_be_another_members_counts_as_theirs() {
    let rates = SharedRateLimiter::new(RATE, BURST);
    let begun = Instant::now();
    for _ in 0..1_000 {
        rates.count_request(&of("unread"), begun).unwrap();
        if rates.transfer_request(&of("unread"), &of("flood"), begun).is_err() {
            break;
        }
    }
    assert!(rates.count_request(&of("flood"), begun).is_err());
    assert_eq!(rates.count_request(&of("unread"), begun), Ok(()));
    assert_eq!(rates.transfer_request(&of("unread"), &of("ann"), begun), Ok(()));
}

#[test]
fn those_who_used_nothing_are_forgotten() {
    let rates = SharedRateLimiter::new(RATE, BURST);
    let begun = Instant::now();
    for number in 0..=MANY {
        assert_eq!(rates.count_request(&QuotaHolder::for_group(number.to_string()), begun), Ok(()));
    }
    let later = begun + Duration::from_secs(1);
    assert_eq!(rates.count_request(&of("ann"), later), Ok(()));
    assert_eq!(rates.groups.lock().unwrap().len(), 1);
}

#[test]
fn a_burst_of_one_is_used() {
    let rates = SharedRateLimiter::new(1, 1);
    let begun = Instant::now();
    assert_eq!(rates.count_request(&of("ann"), begun), Ok(()));
    assert!(rates.count_request(&of("bob"), begun).is_err());
    assert_eq!(rates.count_request(&of("bob"), begun + Duration::from_secs(1)), Ok(()));
}
