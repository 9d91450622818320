//! Tools that a human must consent to.

use kairo_proto::{Body, v1::ToolCatalogue};
use serde_json::json;

use super::kairo::{Call, Kairo, failed, said};

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
