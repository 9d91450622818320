//! Tests of `permissions`.

use super::*;

fn is_in(pattern: &str, subject: &str) -> bool {
    let mut pattern = pattern.split('.');
    let mut subject = subject.split('.');
    loop {
        match (pattern.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

fn may_publish(identity: NatsIdentity, subject: &str) -> bool {
    let SubjectRules { allow, deny } = identity.permissions().publish;
    allow.iter().any(|pattern| is_in(pattern, subject)) && !deny.iter().any(|pattern| is_in(pattern, subject))
}

fn who_may_publish(subject: &str) -> Vec<&'static str> {
    let others = NatsIdentity::ALL.into_iter().filter(|identity| *identity != NatsIdentity::Provision);
    others.filter(|identity| may_publish(*identity, subject)).map(NatsIdentity::name).collect()
}

#[test]
fn what_the_table_lists_has_a_single_publisher_and_that_is_its_emitter() {
    for route in TABLE {
        match route.emitter {
            Emitter::Only(service) => {
                let said = publish_subject(route, service).replace('*', "x");
                assert_eq!(who_may_publish(&said), [service.name()], "{said}");
            }
            Emitter::Owner => {
                for service in Service::ALL {
                    assert_eq!(who_may_publish(&publish_subject(route, service)), [service.name()]);
                }
            }
            Emitter::Timer => {
                let said = route.stored_filter().replace('*', "x");
                assert!(who_may_publish(&said).is_empty(), "{said}");
            }
        }
    }
}

#[test]
fn other_systems_say_nothing_that_kairo_says_of_itself() {
    // In its own account, from where a gateway takes it.
    assert_eq!(who_may_publish("kairo.system.github.push"), ["gateway", "outside"]);
    for subject in ["kairo.system.github.catalogue", "kairo.system.tool-runner.push", "kairo.system.github.push.3"] {
        assert!(who_may_publish(subject).is_empty(), "{subject}");
    }
}

#[test]
fn data_keys_are_made_by_those_who_seal_and_orders_to_forget_somebody_by_gateways_alone() {
    let of = |key: &str| who_may_publish(&format!("$KV.{DATA_KEYS_BUCKET}.{key}"));
    for order in ["order.ann", "installation.1"] {
        assert_eq!(of(order), ["gateway"], "{order}");
    }
    for key in ["user.ann.1", "agent.keeper.1", "object.abc.1"] {
        assert_eq!(of(key), ["gateway", "router", "agent-runtime", "tool-runner", "process-supervisor"], "{key}");
    }
}

#[test]
fn other_systems_share_one_subject_with_kairo_and_have_no_stream() {
    let worker = "{ user: worker }".to_owned();
    let users = [NatsIdentity::Outside, NatsIdentity::Service(Service::Router)].map(|it| (it, it.name().to_owned()));
    let text = render_all() + &render_accounts(users, [worker]);
    let (inside, outside) = text.split_once("  OUTSIDE {").unwrap();
    assert!(outside.contains("      outside\n") && !outside.contains("router") && !outside.contains("jetstream"));
    assert!(inside.contains("      router\n      { user: worker }\n"), "{inside}");
    assert!(inside.contains("EXPORTS = [{ service: \"kairo.entrance.*.*\", accounts: [OUTSIDE] }]"), "{inside}");
}

#[test]
fn streams_and_shared_consumers_are_made_and_changed_by_nobody_else() {
    let forbidden = ["STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.DELETE"];
    for (stream, request) in STREAMS.iter().flat_map(|stream| forbidden.map(|request| (*stream, request))) {
        let who = who_may_publish(&api_subject(request, stream));
        let expected: &[&str] = match (request, stream) {
            ("STREAM.CREATE", "KV_KAIRO_MEMBERS" | "KV_KAIRO_OWNERS") => &["router", "agent-runtime"],
            ("STREAM.CREATE", "KV_KAIRO_CONGESTION") => &["gateway"],
            ("STREAM.PURGE", "OBJ_KAIRO_OBJECTS") => &["gateway", "tool-runner"],
            ("STREAM.MSG.DELETE", TIMERS_STREAM) => &["agent-runtime"],
            ("STREAM.MSG.DELETE", "KV_KAIRO_DATA_KEYS" | "KV_KAIRO_KEYS") => &["gateway"],
            _ => &[],
        };
        assert_eq!(who, expected, "{request} {stream}");
    }
    for consumer in Consumer::DURABLE {
        let of = |request: &str| format!("{}.{}", api_subject(request, consumer.stream()), consumer.name());
        let filtered = format!("{}.kairo.user.x.message.3", of("CONSUMER.CREATE"));
        for subject in [of("CONSUMER.CREATE"), filtered, of("CONSUMER.DELETE"), of("CONSUMER.DURABLE.CREATE")] {
            assert!(who_may_publish(&subject).is_empty(), "{subject}");
        }
        assert_eq!(who_may_publish(&of("CONSUMER.MSG.NEXT")), [consumer.service().name()]);
        let ack = format!("$JS.ACK.{}.{}.1.2.3.4.5", consumer.stream(), consumer.name());
        assert_eq!(who_may_publish(&ack), [consumer.service().name()]);
    }
    // Without a name in the subject the body may name any consumer.
    assert!(who_may_publish(&api_subject("CONSUMER.CREATE", EVENTS_STREAM)).is_empty());
}

#[test]
fn a_worker_speaks_for_itself_alone_and_to_tool_runner() {
    let billing = Name::parse("billing").unwrap();
    let NatsPermissions { publish, subscribe } = worker_permissions(&billing);
    let may = |rules: &SubjectRules, subject: &str| rules.allow.iter().any(|pattern| is_in(pattern, subject));
    let action = uuid::Uuid::nil();
    for subject in [workers::announce_subject(&billing), workers::report_subject(&billing, action)] {
        assert!(may(&publish, &subject) && who_may_publish(&subject).is_empty(), "{subject}");
    }
    let to_it = [
        workers::hello_subject(&billing),
        workers::call_subject(&billing, "t"),
        workers::order_subject(&billing, action),
    ];
    for subject in to_it {
        assert!(may(&subscribe, &subject) && !may(&publish, &subject), "{subject}");
        assert_eq!(who_may_publish(&subject), ["tool-runner"], "{subject}");
    }
    let other = Name::parse("shipping").unwrap();
    let forbidden = [
        workers::announce_subject(&other),
        workers::report_subject(&other, action),
        "kairo.tool.a.result.1".to_owned(),
    ];
    assert!(!forbidden.iter().any(|subject| may(&publish, subject)));
    assert!(!may(&subscribe, &workers::call_subject(&other, "t")));
}

#[test]
fn nobody_hears_what_another_is_answered() {
    for identity in NatsIdentity::ALL.into_iter().filter(|identity| *identity != NatsIdentity::Provision) {
        let heard = identity.permissions().subscribe.allow;
        for service in Service::ALL.map(NatsIdentity::Service).into_iter().filter(|other| *other != identity) {
            let inbox = format!("{}.x.1", inbox_prefix(service.name()));
            assert!(!heard.iter().any(|pattern| is_in(pattern, &inbox)), "{} {inbox}", identity.name());
        }
    }
}
