//! Spending caps of an agent: a reached cap ends the turn, and says what can be done.

use kairo_events::prices::ModelPrice;
use kairo_proto::v1::{BasisPrice, Caps, GivenUpCall, SessionBounds};

use super::{background::queues, *};
use crate::{deliberation::with_cost_of_abandoned_calls, prices::PriceList, team::Amount};

const DAY_S: i64 = 24 * 3_600;

fn with(caps: Caps, more: AgentProfile) -> Agent {
    Agent::with(AgentProfile { caps: Some(caps), ..more })
}

fn of_day(tokens_per_day: u64) -> Caps {
    Caps { tokens_per_day, ..Default::default() }
}

fn took(tokens: u64, completion: Completion) -> Completion {
    Completion { input_tokens: tokens / 2, output_tokens: tokens - tokens / 2, model: "m".into(), ..completion }
}

/// One model in each tier. A token costs so many millionths; without a price nobody knows.
fn priced(price: Option<u64>, fallback: Option<u64>) -> DecisionLimits {
    let known =
        |price: u64| ModelPrice::from_basis_price(&BasisPrice { input: price, output: price, ..Default::default() });
    let listed = ["heavy", "fast", "light"].map(|tier| (tier.to_owned(), "m".to_owned(), price.map(known)));
    DecisionLimits { prices: PriceList::from_models(listed.into(), fallback.map(known)), ..limits() }
}

#[test]
fn a_cap_of_tokens_ends_the_turn_in_the_middle_and_holds_until_the_next_day() {
    let mut agent = with(of_day(100), AgentProfile { time_zone: "Europe/Berlin".into(), ..Default::default() });
    agent.hears("m1", "what time is it?");
    let asked = agent.decides(&[took(120, calls(&["tools.now"]))]).unwrap();
    agent.learns(&asked, &actions(&asked)[0], "noon");
    let ended = acts(&agent.decides(&[]).unwrap());
    assert_eq!(ended[0], "cap_reached?");
    for part in ["100 tokens a day, and 120 are used", "caps.tokens_per_day", "administrator", "1970-01-01T23:00:00Z"] {
        assert!(ended[1].contains(part), "{part} is not in {}", ended[1]);
    }
    assert!(!ended[1].contains("try again later") && agent.mind.state.turns.is_empty());
    agent.hears("m2", "and now?");
    assert_eq!(acts(&agent.decides(&[]).unwrap())[0], "cap_reached?", "no model is asked");
    agent.later = DAY_S;
    agent.hears("m3", "and now?");
    assert_eq!(acts(&agent.decides(&[took(10, says("noon"))]).unwrap()), ["noon"]);
    assert_eq!(agent.mind.state.spending.in_total.tokens, 130);
}

#[test]
fn a_cap_in_total_holds_for_good_until_it_is_raised() {
    let total = |tokens_in_total| Caps { tokens_in_total, since: "s".into(), ..Default::default() };
    let mut agent = with(total(50), AgentProfile::default());
    let define = |agent: &mut Agent, caps: Option<Caps>| {
        let profile = AgentProfile { agent: "a".into(), prompt: "Be brief.".into(), caps, ..Default::default() };
        agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile), ..Default::default() });
    };
    agent.hears("m1", "hello");
    agent.decides(&[took(60, says("hi"))]).unwrap();
    agent.later = 9 * DAY_S;
    agent.hears("m2", "hello");
    let ended = acts(&agent.decides(&[]).unwrap());
    assert!(ended[1].contains("50 tokens in total, and 60 are used") && ended[1].contains("caps.tokens_in_total"));
    define(&mut agent, Some(total(70)));
    agent.hears("m3", "hello");
    assert_eq!(acts(&agent.decides(&[took(60, says("hi"))]).unwrap()), ["hi"]);
    agent.hears("m4", "hello");
    assert_eq!(acts(&agent.decides(&[]).unwrap())[0], "cap_reached?");
    // Whoever takes the caps off and sets them anew begins to count anew.
    define(&mut agent, None);
    define(&mut agent, Some(Caps { since: "later".into(), ..total(70) }));
    agent.hears("m5", "hello");
    assert_eq!(acts(&agent.decides(&[took(60, says("hi"))]).unwrap()), ["hi"]);
}

#[test]
fn money_is_counted_by_price_by_the_fallback_price_or_not_at_all() {
    let caps = Caps { cost_per_day: "0.0001".into(), ..Default::default() };
    for limits in [priced(Some(1_000_000), None), priced(None, Some(1_000_000))] {
        let mut agent = with(caps.clone(), AgentProfile::default());
        agent.limits = limits;
        for message in ["m1", "m2"] {
            agent.hears(message, "hello");
            assert_eq!(acts(&agent.decides(&[took(60, says("hi"))]).unwrap()), ["hi"]);
        }
        agent.hears("m3", "hello");
        let ended = acts(&agent.decides(&[]).unwrap());
        assert!(ended[1].contains("0.00012 of 0.0001 is spent"), "{ended:?}");
    }
    let mut agent = with(caps, AgentProfile::default());
    agent.limits = priced(None, None);
    agent.hears("m1", "hello");
    let ended = acts(&agent.decides(&[]).unwrap());
    assert!(ended[1].contains("the model m has no price") && ended[1].contains("models.fallback_price"), "{ended:?}");
}

#[test]
fn what_was_spent_on_a_model_without_a_price_is_unknown_and_stops_what_bounds_money() {
    let session = Some(SessionBounds { cost: "5".into(), ..Default::default() });
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), session, ..Default::default() });
    agent.limits = priced(None, None);
    agent.hears("m1", "do it");
    agent.decides(&[queues("I will.", &["one"])]).unwrap();
    let asked = agent.works(&[took(30, calls(&["http.get"]))]).unwrap();
    assert_eq!((decision(&asked).cost, decision(&asked).unpriced_tokens), (0, 30));
    agent.learns(&asked, &actions(&asked)[0], "a page");
    let over = acts(&agent.works(&[]).unwrap());
    assert!(over[0].contains("what was spent is not known: 30 tokens"), "{over:?}");
}

#[test]
fn calls_that_were_given_up_count_too() {
    let caps = Caps { cost_in_total: "0.0001".into(), ..Default::default() };
    let mut agent = with(caps, AgentProfile::default());
    agent.limits = priced(Some(1_000_000), None);
    agent.hears("m1", "hello");
    let input = agent.next_input().unwrap();
    let limits = agent.limits.clone();
    let catalogue = catalogue();
    let (thought, _) = Deliberation::begin(&agent.mind.state, &input, &catalogue, &limits).unwrap();
    let answer = Completion { tier: "heavy".into(), ..took(10, says("hi")) };
    let (_, DeliberationStep::Commit(decision)) = thought.resume(vec![answer]) else { panic!("no decision") };
    let call = GivenUpCall { tier: "heavy".into(), model: "m".into(), output_tokens: 95, ..Default::default() };
    let decision = AgentDecision { given_up: vec![call], ..*decision };
    let decision = with_cost_of_abandoned_calls(decision, &limits.prices, 10);
    assert_eq!((decision.given_up_cost, decision.reader), (95_000_000, 10));
    agent.write(&AGENT_DECISION, Some(&input.record.envelope), decision);
    assert_eq!(agent.mind.state.spending.in_total, Amount { tokens: 105, cost: 105_000_000, unpriced: 0 });
    agent.hears("m2", "hello");
    assert_eq!(acts(&agent.decides(&[]).unwrap())[0], "cap_reached?");
}

#[test]
fn what_is_queued_waits_for_the_next_day() {
    let mut agent = with(of_day(50), AgentProfile { conduct: "background".into(), ..Default::default() });
    agent.hears("m1", "do it");
    agent.decides(&[took(60, queues("I will.", &["one"]))]).unwrap();
    let waits = acts(&agent.works(&[]).unwrap());
    assert!(waits.iter().any(|said| said.contains("has to wait until 1970-01-02T00:00:00Z")), "{waits:?}");
    let next = agent.mind.state.tasks.queue()[0].next_due().unwrap().0;
    assert_eq!(next.to_string(), "1970-01-02T00:00:00Z");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever an agent does, no call is made once a cap is reached: it is passed by the calls that were asked for at once.
    #[test]
    fn no_call_is_made_once_a_cap_is_reached(
        cap in 1_u64..2_000,
        sizes in proptest::collection::vec(0_u64..400, 1..40),
        kinds in proptest::collection::vec(0_u8..3, 1..40),
        topics in any::<bool>(),
        guesses_goal in any::<bool>(),
    ) {
        let threads = if topics { "topics" } else { "single" };
        let profile = AgentProfile { threads: threads.into(), guesses_goal, ..Default::default() };
        let mut agent = with(Caps { tokens_in_total: cap, ..Default::default() }, profile);
        let mut sizes = sizes.into_iter().cycle();
let mut kinds = kinds.into_iter().cycle();
        let mut spent = 0;
let mut largest = 0;
        for at in 0..12 {
            agent.hears(&format!("m{at}"), "what time is it?");
            loop {
                let decided = agent.decides_with(|_| {
                    assert!(spent < cap, "a model is asked though {spent} of {cap} are spent");
                    let size = sizes.next().unwrap();
                    (spent, largest) = (spent + size, largest.max(size));
                    took(size, match kinds.next().unwrap() {
                        0 => says("noon"),
                        1 => calls(&["tools.now"]),
                        _ => fails(false),
                    })
                });
                let Some(decided) = decided else { break };
                for action in actions(&decided) {
                    agent.learns(&decided, &action, "noon");
                }
            }
            prop_assert_eq!(agent.mind.state.spending.in_total.tokens, spent);
            prop_assert!(spent < cap + largest, "{} of {}", spent, cap);
            prop_assert!(agent.mind.state.turns.is_empty(), "every turn ends");
        }
    }
}
