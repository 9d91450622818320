use std::collections::BTreeSet;

use super::*;

fn settings(seconds: u64, seed: u64) -> Settings {
    Settings::new(Duration::from_secs(seconds), seed, 2)
}

fn kills(plan: &Plan) -> usize {
    plan.faults.iter().filter(|fault| matches!(fault.blow, Blow::Kill { .. })).count()
}

#[test]
fn the_same_seed_is_the_same_plan() {
    assert_eq!(Plan::new(&settings(100, 5)), Plan::new(&settings(100, 5)));
    let other = Plan::new(&settings(100, 6));
    assert_ne!(Plan::new(&settings(100, 5)).faults, other.faults);
    assert_ne!(Plan::new(&settings(100, 5)).messages, other.messages);
}

#[test]
fn a_longer_run_begins_like_a_shorter_one() {
    let (short, long) = (Plan::new(&settings(60, 5)), Plan::new(&settings(600, 5)));
    assert!(long.faults.starts_with(&short.faults));
    assert!(long.messages.starts_with(&short.messages));
}

#[test]
fn a_minute_sees_every_kind_of_fault_on_every_target() {
    for seed in 0..50 {
        let plan = Plan::new(&settings(60, seed));
        let struck: BTreeSet<String> = plan
            .faults
            .iter()
            .map(|fault| match (fault.target, fault.blow) {
                (Target::Replica(service, _), Blow::Kill { .. }) => format!("kill {service:?}"),
                (Target::Replica(service, _), Blow::Freeze { .. }) => format!("freeze {service:?}"),
                (Target::Replica(..), Blow::Restart) => "restart".to_owned(),
                (target, Blow::Kill { .. }) => format!("kill {target:?}"),
                (target, Blow::Freeze { .. }) => format!("freeze {target:?}"),
                (_, Blow::PublishAgain { .. }) => "publish again".to_owned(),
                (_, blow) => format!("{blow:?}"),
            })
            .collect();
        assert_eq!(struck.len(), 2 * SERVICES.len() + 1 + 4 + 4, "seed {seed}: {struck:#?}");
    }
}

#[test]
fn there_is_a_kill_every_two_seconds_and_all_are_killed_at_once_now_and_then() {
    for seed in 0..20 {
        for replicas in [1, 3] {
            let plan = Plan::new(&Settings { replicas, ..settings(600, seed) });
            assert!(kills(&plan) >= 300, "seed {seed}: {} kills", kills(&plan));
            let at_once = |at| plan.faults.iter().filter(|fault| fault.at == at).count();
            assert!(plan.faults.iter().any(|fault| at_once(fault.at) >= SERVICES.len() * replicas));
        }
    }
}

#[test]
fn faults_come_in_order_and_within_the_time() {
    let plan = Plan::new(&settings(100, 1));
    assert!(plan.faults.is_sorted_by_key(|fault| fault.at));
    assert!(plan.faults.iter().all(|fault| fault.at < Duration::from_secs(100)));
    assert!(plan.faults.iter().all(|fault| match fault.blow {
        Blow::Freeze { lasts } => (500..=8_000).contains(&lasts.as_millis()),
        // When none of them is there.
        Blow::Kill { down } if matches!(fault.target, Target::Replica(Service::ToolRunner, _)) => {
            down.as_millis() <= 8_000
        }
        Blow::Kill { down } => down.as_millis() <= 3_000,
        _ => true,
    }));
}

#[test]
fn messages_wish_for_everything_have_their_own_ids_and_come_in_bursts_and_twice() {
    let messages = Plan::new(&settings(60, 1)).messages;
    let wishes: BTreeSet<Wish> = messages.iter().map(|message| message.wish).collect();
    assert_eq!(wishes.len(), Wish::ALL.len());
    let ids: BTreeSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids.len(), messages.len());
    assert!(messages.iter().any(|message| message.copies == 2));
    let together = |at| messages.iter().filter(|message| message.at == at).count();
    assert!(messages.iter().any(|message| together(message.at) == 6));
}

#[test]
fn calls_are_recalled_while_no_runner_is_there() {
    for seed in 0..20 {
        let plan = Plan::new(&settings(120, seed));
        let recalls: Vec<&Message> = plan.messages.iter().filter(|message| message.id.starts_with('r')).collect();
        assert!(recalls.len() >= 6, "seed {seed}");
        for recall in recalls {
            let is_out = |index: usize| {
                plan.faults.iter().any(|fault| {
                    let (Blow::Kill { down: lasts } | Blow::Freeze { lasts }) = fault.blow else { return false };
                    let is_runner = fault.target == Target::Replica(Service::ToolRunner, index);
                    is_runner && fault.at <= recall.at && recall.at <= fault.at + lasts
                })
            };
            assert!(recall.wish == Wish::Recall && is_out(0) && is_out(1), "seed {seed}: {recall:?}");
        }
    }
}

#[test]
fn a_slower_model_is_asked_less() {
    let slow = Settings { model_delay: "0-5000".parse().unwrap(), ..settings(60, 1) };
    let (quick, slow) = (Plan::new(&settings(60, 1)), Plan::new(&slow));
    assert!(slow.messages.len() * 3 < quick.messages.len() && slow.messages.len() > 30, "{}", slow.messages.len());
    assert_eq!(slow.faults, quick.faults);
}

#[test]
fn a_walk_takes_every_replica_there_and_back_and_there_again_and_then_promotes() {
    let settings = Settings { course: Course::Walk, ..settings(60, 7) };
    let plan = Plan::new(&settings);
    assert_eq!(plan.faults, Plan::new(&settings).faults);
    for service in SERVICES {
        for index in 0..settings.replicas {
            let of_it = plan.faults.iter().filter(|fault| fault.target == Target::Replica(service, index));
            let builds = of_it.map(|fault| match fault.blow {
                Blow::Replace { build, .. } => build,
                other => panic!("{other:?}"),
            });
            assert_eq!(builds.collect::<Vec<_>>(), [Build::Newer, Build::Older, Build::Newer]);
        }
    }
    assert_eq!(plan.faults.last().map(|fault| (fault.target, fault.blow)), Some((Target::Fleet, Blow::Promote)));
    for killed in [true, false] {
        let is_so = |fault: &&Fault| matches!(fault.blow, Blow::Replace { killed: it, .. } if it == killed);
        assert!(plan.faults.iter().filter(is_so).count() > 6, "both ways of ending are tried");
    }
}

#[test]
fn a_rolling_restart_takes_every_replica_and_every_server_once_and_kills_nobody() {
    let settings = Settings { course: Course::Restarts, servers: 3, ..settings(60, 7) };
    let faults = Plan::new(&settings).faults;
    let is_replica = |fault: &&Fault| matches!((fault.target, fault.blow), (Target::Replica(..), Blow::RestartInTurn));
    assert_eq!(faults.iter().filter(is_replica).count(), SERVICES.len() * settings.replicas);
    let servers = faults.iter().filter_map(|fault| match fault.blow {
        Blow::LameDuck { server } => Some(server),
        _ => None,
    });
    assert_eq!(servers.collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(faults.len(), SERVICES.len() * settings.replicas + 3);
    assert!(faults.is_sorted_by_key(|fault| fault.at) && faults.iter().all(|fault| fault.at < settings.time));
}

#[test]
fn a_trial_does_one_thing_to_one_after_the_other() {
    let of = |course| Plan::new(&Settings { course, servers: 3, ..settings(95, 7) }).faults;
    let cut_off = of(Course::Partition).into_iter().map(|fault| match fault.blow {
        Blow::CutOff { server, .. } => server,
        other => panic!("{other:?}"),
    });
    assert_eq!(cut_off.collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(of(Course::DiskFull).len(), 3);
    assert_eq!(of(Course::Leaders).len(), 3);
    assert_eq!(of(Course::LogFull).len(), 1);
}
