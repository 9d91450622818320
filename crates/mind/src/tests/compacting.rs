//! Threads that grow too long to be shown: what is oldest is summed up, and work goes on.

use kairo_proto::v1::ThreadCompacted;

use super::{background::queues, chains::kinds, *};

/// An agent whose models take so many tokens at once.
fn with(profile: AgentProfile, most: usize) -> Agent {
    let mut agent = Agent::with(profile);
    let tiers = ["heavy", "fast", "light"].map(str::to_owned);
    // As a runtime has them that has no limit of steps to speak of.
    agent.limits = DecisionLimits { context_tokens: tiers.map(|tier| (tier, most)).into(), max_steps: 100, ..limits() };
    agent
}

fn compacted(record: &Record) -> ThreadCompacted {
    let compacted = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::ThreadCompacted(compacted)) = &event.event else { return None };
        Some(compacted.clone())
    };
    decision(record).events.iter().find_map(compacted).unwrap()
}

fn is_compaction(request: &ModelRequest) -> bool {
    matches!(&request.messages[0], PromptMessage::System { text } if text.starts_with("You are thread.compact"))
}

#[test]
fn a_task_of_many_calls_is_compacted_again_and_again_and_its_words_and_open_calls_stay() {
    let mut agent = with(AgentProfile { conduct: "background".into(), ..Default::default() }, 4_000);
    agent.hears("m1", "Research NVIDIA stock");
    agent.decides(&[queues("I will.", &["Research NVIDIA stock, in all detail"])]).unwrap();
    let mut summaries = 0;
    let mut calls_made = 0;
    while calls_made < 40 {
        let decided = agent.works_with(|request| match is_compaction(request) {
            true => says(&format!("summary number {calls_made}")),
            false => calls(&["http.get"]),
        });
        let decided = decided.unwrap();
        if kinds(&decided).contains(&"compacted".to_owned()) {
            summaries += 1;
            let told = compacted(&decided);
            assert!(told.summary.starts_with("summary number") && told.entries > 1);
            let shown = agent.texts().join("\n");
            assert!(shown.contains("Research NVIDIA stock, in all detail"), "the task stays as it was");
            assert!(shown.contains(&told.summary));
            assert_eq!(shown.matches("What came before, summed up").count(), 1, "a summary stands for those before it");
        }
        let action = actions(&decided).pop().unwrap();
        agent.learns(&decided, &action, &format!("result {calls_made}: {}", "a word ".repeat(100)));
        calls_made += 1;
    }
    assert!(summaries > 1, "{summaries}");
    let compactions: Vec<_> = agent.asked.iter().filter(|request| is_compaction(request)).collect();
    assert!(compactions.iter().all(|request| request.tier == "light"));
    let told = |request: &ModelRequest| match &request.messages[1] {
        PromptMessage::User { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(told(compactions[1]).contains("summary number"), "a compaction of a compaction");
    let most = |request: &ModelRequest| crate::tokens::count_over(request, 4_000).unwrap_or_default();
    assert!(agent.asked.iter().all(|request| most(request) == 0), "no request was too much");
    assert_eq!(kinds(&agent.works(&[says("done")]).unwrap()).last().unwrap(), "say done");
    agent.is_replayed();
}

#[test]
fn a_conversation_keeps_a_summary_instead_of_a_gap() {
    let mut agent = with(AgentProfile { history_limit: 60, ..Default::default() }, 100_000);
    for number in 0..60 {
        agent.hears(&format!("m{number}"), &format!("My number {number} is {}", number * 7));
        agent
            .decides_with(|request| if is_compaction(request) { says("they like numbers") } else { says("ok") })
            .unwrap();
    }
    let shown = agent.asked.last().unwrap();
    let first = match &shown.messages[1] {
        PromptMessage::User { text, .. } => block_contents(text).next().unwrap_or_default().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(first, "What came before, summed up:\nthey like numbers");
    assert!(shown.messages.len() < 60);
    agent.is_replayed();
}

#[test]
fn without_a_summary_the_thread_goes_on_and_a_summary_that_nobody_can_make_ends_nothing() {
    let mut agent = with(AgentProfile::default(), 1_000);
    for number in 0..12 {
        agent.hears(&format!("m{number}"), &"a word ".repeat(100));
        let answer = |request: &ModelRequest| if is_compaction(request) { fails(false) } else { says("ok") };
        let decided = agent.decides_with(answer).unwrap();
        assert_eq!(acts(&decided).last().unwrap(), "ok");
    }
    // Builds that were told of no limits sum nothing up.
    agent.limits = limits();
    agent.hears("last", "and?");
    let decided = agent.decides_with(|request| if is_compaction(request) { panic!("asked") } else { says("ok") });
    assert_eq!(acts(&decided.unwrap()), ["ok"]);
}

#[test]
fn what_is_too_much_for_a_model_is_asked_once_more_with_less() {
    let too_much = || {
        let kind = "context_too_long".to_owned();
        let message = "at most 10 tokens".to_owned();
        Completion {
            error: Some(CompletionError { kind, message, transient: false, ..Default::default() }),
            ..Default::default()
        }
    };
    let mut agent = Agent::new();
    for number in 0..6 {
        agent.hears(&format!("m{number}"), &format!("question {number}"));
        agent.decides(&[says("ok")]).unwrap();
    }
    agent.hears("m6", "question 6");
    let decided = agent.decides(&[too_much(), says("short")]).unwrap();
    assert_eq!(acts(&decided), ["context_too_long?", "short"]);
    let [.., whole, less] = agent.asked.as_slice() else { panic!() };
    assert!(less.messages.len() < whole.messages.len() / 2 + 2);
    assert_eq!((less.messages.first(), less.messages.last()), (whole.messages.first(), whole.messages.last()));
    agent.hears("m7", "question 7");
    let failed = acts(&agent.decides_with(|_| too_much()).unwrap());
    let (told, tries) = failed.split_last().unwrap();
    assert!(tries.len() > 2 && tries.iter().all(|try_| try_ == "context_too_long?"), "{tries:?}");
    assert!(told.contains("its tools alone take about") && told.contains("fewer tools"), "{told}");
    agent.is_replayed();
}

/// Returns the answer of a summariser that repeats every fact it is shown, each once.
fn repeats_every_fact(request: &ModelRequest) -> String {
    let PromptMessage::User { text, .. } = &request.messages[1] else { panic!("nothing to sum up") };
    let facts = text.split("<<").skip(1).filter_map(|rest| rest.split_once(">>"));
    let facts: std::collections::BTreeSet<String> = facts.map(|(fact, _)| format!("<<{fact}>>")).collect();
    format!("What is known: {}", facts.into_iter().collect::<Vec<_>>().join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    /// With a summariser that repeats every fact, all facts are there after ten compactions, whatever the sizes.
    #[test]
    fn a_faithful_summariser_loses_nothing_whatever_the_sizes(
        most in 3_000..12_000usize, light in 2_500..12_000usize, sizes in prop::collection::vec(0..7_000usize, 20),
        fact_bytes in 10..120usize, is_of_results in any::<bool>(), seed in any::<u32>(),
    ) {
        let mut agent = with(AgentProfile { history_limit: 60, ..Default::default() }, most);
        agent.limits.context_tokens.insert("light".into(), light);
        let fact = |at: usize| {
            let words = ["quay", "码头", "Straße", "muelle"];
            format!("<<{} {at} is {:x} {}>>", words[at % 4], seed.wrapping_mul(at as u32 + 1), "a".repeat(fact_bytes))
        };
        let mut compactions = 0;
let mut at = 0;
        while compactions < 10 && at < 400 {
            let size = sizes[at % sizes.len()];
let told = if at < 20 { fact(at) } else { String::new() };
            let long = format!("{}{told}{}", "so it is ".repeat(size / 18), "and on ".repeat(size / 14));
            let decides = |agent: &mut Agent| agent.decides_with(|request| match is_compaction(request) {
                true => says(&repeats_every_fact(request)),
                false if is_of_results && !format!("{:?}", request.messages.last()).contains("Tool") => calls(&["http.get"]),
                false => says("ok"),
            });
            agent.hears(&format!("m{at}"), if is_of_results { "look" } else { &long });
            let mut decided = decides(&mut agent).unwrap();
            let mut is_compacted = kinds(&decided).contains(&"compacted".to_owned());
            if let Some(action) = actions(&decided).pop() {
                agent.learns(&decided, &action, &long);
                decided = decides(&mut agent).unwrap();
                is_compacted |= kinds(&decided).contains(&"compacted".to_owned());
            }
            compactions += usize::from(is_compacted);
            at += 1;
        }
        prop_assert!(compactions == 10, "{compactions} compactions");
        let kept = serde_json::to_string(&agent.mind.state.threads).unwrap();
        let lost: Vec<usize> = (0..at.min(20)).filter(|at| !kept.contains(&fact(*at))).collect();
        prop_assert!(lost.is_empty(), "lost {lost:?}");
        agent.is_replayed();
    }
}

#[test]
fn what_nobody_could_sum_up_stays_in_the_thread() {
    let mut agent = with(AgentProfile { history_limit: 60, ..Default::default() }, 3_000);
    let mut asked = 0;
    for at in 0..12 {
        agent.hears(&format!("m{at}"), &format!("fact {at}: {}", "a word ".repeat(250)));
        let decided = agent.decides_with(|request| match is_compaction(request) {
            true => {
                asked += 1;
                if asked % 2 == 0 { fails(false) } else { says("the first of it") }
            }
            false => says("ok"),
        });
        let told =
            decision(&decided.unwrap()).events.iter().any(|it| matches!(it.event, Some(Event::ThreadCompacted(_))));
        let kept = serde_json::to_string(&agent.mind.state.threads).unwrap();
        assert!(!told || kept.contains(&format!("fact {at}: ")), "what was not shown is not dropped");
    }
    assert!(asked > 2);
    agent.is_replayed();
}
