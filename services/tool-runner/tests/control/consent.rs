//! Tools that a human must consent to.

use kairo_proto::{Body, v1::ToolCatalogue};
use serde_json::json;

use super::kairo::{Call, Decided, Kairo, failed, said};

#[tokio::test]
async fn without_consent_nothing_is_begun() {
    let root = tempfile::tempdir().unwrap();
    let env = [
        ("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", root.path().display().to_string()),
        ("KAIRO_TOOL_RUNNER__APPROVAL", "tools.*,team.members".to_owned()),
        ("KAIRO_TOOL_RUNNER__NO_APPROVAL", "tools.date_calc".to_owned()),
    ];
    let kairo = Kairo::start(2, &env).await;
    let needs_approval =
        kairo.wait("kairo.system.*.catalogue", |record| Some(ToolCatalogue::of(&record.body)?.tools.clone())).await;
    let needs_approval: Vec<&str> =
        needs_approval.iter().filter(|tool| tool.needs_approval).map(|tool| tool.name.as_str()).collect();
    assert_eq!(needs_approval, ["email.send", "team.members", "tools.now"]);

    let mail = json!({"to": "b@example.org", "subject": "s", "body": "b"});
    let send = || Call { tool: "email.send", arguments: mail.clone(), target: None };
    for call in [send(), Call { tool: "tools.now", arguments: json!({}), target: None }] {
        let refused = kairo.decide(call).await;
        assert_eq!(failed(&kairo.result(refused.action).await.0).0, "approval_required");
        let begun = |body: &Body| matches!(body, Body::ToolInvoke(invoke) if invoke.actions.iter().any(|one| one.action_id == refused.action.to_string()));
        assert!(!kairo.log().await.iter().any(|record| begun(&record.body)));
    }
    assert!(!root.path().join("ann/mail/Sent").exists());

    let (sent, approval) = kairo.decide_with_consent(send()).await;
    let result = said(&kairo.result(sent.action).await.0);
    assert!(root.path().join("ann").join(result["path"].as_str().unwrap()).is_file());
    assert_eq!(kairo.invoke(sent.action).await.actions[0].approval_id, approval);
    let free = kairo.call("tools.date_calc", json!({"from": "2026-03-25", "add": "1 day"}), None).await;
    assert!(free.ok, "{free:?}");
    kairo.stop().await;
}

/// A Kairo in which mails, pages and the clock need consent; mails are files below the folder.
async fn asking(replicas: usize) -> (Kairo, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let env = [
        ("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", root.path().display().to_string()),
        ("KAIRO_TOOL_RUNNER__APPROVAL", "http.get,tools.now".to_owned()),
    ];
    (Kairo::start(replicas, &env).await, root)
}

fn mail(subject: &str) -> Call {
    Call {
        tool: "email.send",
        arguments: json!({ "to": "b@example.org", "subject": subject, "body": "b" }),
        target: None,
    }
}

fn mails_sent(root: &std::path::Path) -> usize {
    let folder = root.join("ann/mail/Sent");
    ["cur", "new"].map(|part| std::fs::read_dir(folder.join(part)).map_or(0, Iterator::count)).iter().sum()
}

/// Counts the calls that were made; all others must have been refused because the consent was used.
async fn count_calls(kairo: &Kairo, decided: &[Decided]) -> usize {
    let mut made = 0;
    for call in decided {
        let (result, _) = kairo.result(call.action).await;
        match result.ok {
            true => made += 1,
            false => {
                let (kind, why) = failed(&result);
                assert!(kind == "approval_required" && why.contains("another call has used it"), "{kind}: {why}");
            }
        }
    }
    made
}

#[tokio::test]
async fn a_consent_is_for_one_call_however_many_name_it() {
    let (kairo, root) = asking(2).await;
    // One decision behind another.
    let (request, asked_at) = kairo.consent(&mail("one")).await;
    let first = kairo.decide_by([mail("one")], &request, asked_at).await;
    assert_eq!(count_calls(&kairo, &first).await, 1);
    for _ in 0..2 {
        let again = kairo.decide_by([mail("one")], &request, asked_at).await;
        assert_eq!(count_calls(&kairo, &again).await, 0);
    }
    assert_eq!(mails_sent(root.path()), 1);
    // In the same decision, and in several that both replicas are given at once.
    for together in [true, false] {
        let (request, asked_at) = kairo.consent(&mail("two")).await;
        let mut all = Vec::new();
        match together {
            true => all.extend(kairo.decide_by(vec![mail("two"); 4], &request, asked_at).await),
            false => {
                for decided in
                    futures::future::join_all((0..6).map(|_| kairo.decide_by([mail("two")], &request, asked_at))).await
                {
                    all.extend(decided);
                }
            }
        }
        assert_eq!(count_calls(&kairo, &all).await, 1);
    }
    assert_eq!(mails_sent(root.path()), 3);
    // Each consent of its own is one.
    assert!(kairo.result(kairo.decide_with_consent(mail("one")).await.0.action).await.0.ok);
    assert_eq!(mails_sent(root.path()), 4);
    kairo.stop().await;
}

#[tokio::test]
async fn what_was_begun_on_a_consent_is_carried_out_by_whoever_is_left_and_nothing_else_is() {
    let (mut kairo, _root) = asking(1).await;
    let page = Call { tool: "http.get", arguments: json!({ "url": kairo.site() }), target: None };
    let (request, asked_at) = kairo.consent(&page).await;
    let begun = kairo.decide_by([page.clone()], &request, asked_at).await;
    let _first = kairo.asked_at_site().await;
    kairo.kill9(0).await;
    kairo.another().await;
    // It was delivered again, and may be done again: it is the same call.
    let _lasting = kairo.asked_at_site().await;
    assert_eq!(kairo.invoke(begun[0].action).await.actions[0].approval_id, request);
    // Whoever came later knows nothing but what the ledger says.
    let again = kairo.decide_by([page], &request, asked_at).await;
    assert_eq!(count_calls(&kairo, &again).await, 0);
    assert!(!kairo.was_site_asked());
    kairo.stop().await;
}

#[tokio::test]
async fn a_consent_to_what_was_canceled_is_used_up() {
    let (kairo, root) = asking(1).await;
    let (request, asked_at) = kairo.consent(&mail("one")).await;
    // Several of which nobody will ever be begun: that can always be said.
    for _ in 0..2 {
        kairo.withdraw_on(&request).await;
    }
    let again = kairo.decide_by([mail("one")], &request, asked_at).await;
    assert_eq!(count_calls(&kairo, &again).await, 0);
    assert_eq!(mails_sent(root.path()), 0);
    kairo.stop().await;
}
