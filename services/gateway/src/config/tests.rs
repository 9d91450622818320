//! Tests of `config`.

use super::*;

#[test]
fn other_machines_are_let_in_only_on_purpose() {
    let open = GatewayConfig { listen: "0.0.0.0:7420".parse().unwrap(), ..Default::default() };
    let mistakes = open.mistakes();
    assert_eq!(mistakes.iter().map(|mistake| mistake.key.as_str()).collect::<Vec<_>>(), ["listen"]);
    assert!(GatewayConfig { allow_remote: true, ..open }.mistakes().is_empty());
    assert!(GatewayConfig::default().mistakes().is_empty());
}

#[test]
fn prices_are_of_names_and_of_beginnings_of_names() {
    let config = |model: &str, currency: &str| {
        let prices = serde_json::json!({ "prices": { model: { "input": 0.15, "output": "2" } }, "currency": currency });
        serde_json::from_value::<GatewayConfig>(prices).unwrap().mistakes()
    };
    assert!(config("gpt-*", "EUR").is_empty() && config("*", "USD").is_empty());
    for (model, currency, key) in
        [("", "EUR", "prices"), ("a*b", "EUR", "prices"), ("a**", "EUR", "prices"), ("a", "", "currency")]
    {
        let mistakes = config(model, currency);
        assert_eq!(mistakes.iter().map(|mistake| mistake.key.as_str()).collect::<Vec<_>>(), [key], "{model}");
    }
}

#[test]
fn money_is_bounded_where_something_has_a_price() {
    let config = |more: &str| {
        let text = format!(r#"{{ "caps": {{ "installation": {{ "cost_per_day": 5 }} }}{more} }}"#);
        let mistakes = serde_json::from_str::<GatewayConfig>(&text).unwrap().mistakes();
        mistakes.into_iter().map(|mistake| mistake.key).collect::<Vec<_>>()
    };
    assert_eq!(config(""), ["caps.installation"]);
    assert!(config(r#", "fallback_price": { "input": 1, "output": 1 }"#).is_empty());
    assert!(config(r#", "prices": { "*": { "input": 1, "output": 1 } }"#).is_empty());
}

#[test]
fn a_key_is_required_as_soon_as_others_may_come() {
    let local = GatewayConfig::default();
    assert!(!local.requires_key());
    assert!(GatewayConfig { require_key: RequireKey::Always, ..local.clone() }.requires_key());
    assert!(GatewayConfig { allow_remote: true, ..local.clone() }.requires_key());
    assert!(GatewayConfig { listen: "[::]:0".parse().unwrap(), ..local }.requires_key());
}

#[test]
fn origins_and_the_admin_key_are_checked_and_the_key_is_not_shown() {
    let good = ["https://app.example.com", "http://localhost:3000"].map(str::to_owned).to_vec();
    let config = GatewayConfig { cors_origins: good, admin_key: Secret::new("x".repeat(32)), ..Default::default() };
    assert!(config.mistakes().is_empty(), "{:?}", config.mistakes());
    for bad in ["*", "null", "", "https://a.example/", "https://a.example/x", "a.example", "https://a.example:443"] {
        let config = GatewayConfig { cors_origins: vec![bad.to_owned()], ..Default::default() };
        assert_eq!(config.mistakes().len(), 1, "{bad}");
    }
    for bad in ["*", "", "Kairo.example.com", "kairo.example.com:443", "https://kairo.example.com", "a b"] {
        let config = GatewayConfig { allowed_hosts: vec![bad.to_owned()], ..Default::default() };
        assert_eq!(config.mistakes().len(), 1, "{bad}");
    }
    let config = GatewayConfig { admin_key: Secret::new("hunter2".to_owned()), ..Default::default() };
    let mistakes = format!("{:?}", config.mistakes());
    assert!(mistakes.contains("admin_key") && !mistakes.contains("hunter2"), "{mistakes}");
}
