use proptest::prelude::*;

use super::*;

/// The secrets of a text, without their names.
fn secret_texts(text: &str) -> Vec<String> {
    redact(text).secrets.into_iter().map(|(_, secret)| secret).collect()
}

#[test]
fn what_is_said_to_be_a_password_is_taken_out() {
    for (text, secret) in [
        ("My password is hunter2.", "hunter2"),
        ("the wifi password for the office is Tr0ub4dor&3, ok?", "Tr0ub4dor&3"),
        ("password: swordfish", "swordfish"),
        ("The password is swordfish", "swordfish"),
        ("Passwort: geheim123", "geheim123"),
        ("Das Kennwort lautet Blumentopf7.", "Blumentopf7"),
        ("密码是abc12345，谢谢", "abc12345"),
        ("密码：qwer-7788", "qwer-7788"),
        ("パスワードは Kairo2026! です", "Kairo2026!"),
        (r#"the password is "correct horse battery staple""#, "correct horse battery staple"),
        (r#"{"user": "ann", "password": "x1y2z3"}"#, "x1y2z3"),
        ("DB_PASSWORD=s3cr3t-value", "s3cr3t-value"),
        ("postgres://kairo:hunter22@db:5432/kairo", "hunter22"),
        ("mot de passe: Bonjour-123", "Bonjour-123"),
        ("password: password: hunter2", "hunter2"),
    ] {
        assert_eq!(secret_texts(text), [secret], "{text}");
        assert!(!redact(text).text.contains(secret), "{text}");
    }
}

#[test]
fn pins_keys_and_cards_are_taken_out() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";
    for (text, name, secret) in [
        ("My PIN is 4711.", "pin", "4711"),
        ("the door code: 0815#", "pin", "0815#"),
        ("card with PIN 9921 please", "pin", "9921"),
        ("验证码是 884213", "pin", "884213"),
        ("use sk-proj-abcdefGHIJ0123456789 for it", "api key", "sk-proj-abcdefGHIJ0123456789"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd", "api key", "ghp_0123456789abcdefABCDEF0123456789abcd"),
        ("id AKIAIOSFODNN7EXAMPLE", "api key", "AKIAIOSFODNN7EXAMPLE"),
        ("xoxb-123456789012-abcdefABCDEF", "api key", "xoxb-123456789012-abcdefABCDEF"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "password",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ),
        ("the api key is 8f3a9c1b77de4a55", "api key", "8f3a9c1b77de4a55"),
        ("Authorization: Bearer abcDEF1234567890abcd", "token", "abcDEF1234567890abcd"),
        (jwt, "token", jwt),
        ("Visa 4111 1111 1111 1111, 12/29", "card number", "4111 1111 1111 1111"),
        ("5500-0055-5555-5559", "card number", "5500-0055-5555-5559"),
        ("amex 378282246310005!", "card number", "378282246310005"),
    ] {
        let cleaned = redact(text);
        let secrets: Vec<_> = cleaned.secrets.iter().map(|(_, secret)| secret.as_str()).collect();
        assert_eq!(secrets, [secret], "{text}");
        if !text.starts_with("AWS") {
            assert_eq!(cleaned.secrets[0].0, name, "{text}");
        }
    }
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----";
    assert_eq!(redact(&format!("key:\n{pem}\nthanks")).text, "key:\n[secret private key]\nthanks");
    let words = "abandon ability able about above absent absorb abstract absurd abuse access accident";
    assert_eq!(secret_texts(&format!("seed phrase: {words}")), [words]);
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "The password is wrong.",
        "My password is in the safe.",
        "I forgot my password and need a new one.",
        "The password is stored in the vault",
        "password: required",
        "Das Passwort ist falsch.",
        "Your password is too short; it must be at least 12 characters.",
        "The key is to keep the plan simple.",
        "Key decisions: ship on 2026-03-01, hire two engineers.",
        "key: documentation-of-the-product-launch",
        "The secret is out.",
        "Secret of success: hard work",
        "Meet Sarah at 14:30 on 2026-11-24, room 4711.",
        "Order 1234567890123456 was sent.",
        "Call +49 170 12345678 or +4915112345678.",
        "See https://example.com/a:b@c and mailto:ann@example.com",
        "commit 8f3a9c1b77de4a550012bbcc8f3a9c1b77de4a55 fixed it",
        "memory 550e8400-e29b-41d4-a716-446655440000",
        "pin the message, then pin it again",
        "ISBN 978-3-16-148410-0",
        "a token of appreciation",
        "[secret password] is what he said; the password is [secret password]",
        "password=<your password>",
        "密码是什么？",
        "the task-sk-list and risk-free offers",
    ] {
        assert_eq!(redact(text), RedactedText { text: text.to_owned(), secrets: Vec::new() }, "{text}");
    }
}

#[test]
fn each_has_a_name_of_its_own_and_is_found_again_without_its_label() {
    let cleaned = redact("Mail password: hunter22, bank password: letmein99. So hunter22 it is. [secret pin] PIN 4711");
    assert_eq!(
        cleaned.text,
        "Mail password: [secret password], bank password: [secret password 2]. So [secret password] it is. \
         [secret pin] PIN [secret pin 2]"
    );
    let names: Vec<_> = cleaned.secrets.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["password", "password 2", "pin 2"]);
}

#[test]
fn work_and_what_is_kept_are_bounded() {
    let many: String = (0..1_000).map(|number| format!("password: secret{number}x ")).collect();
    let cleaned = redact(&many);
    assert_eq!(cleaned.secrets.len(), KEPT);
    assert!(!cleaned.text.contains("secret999x") && cleaned.text.contains("password: [secret]"));
    for endless in ["password: ", "密码是", "-----BEGIN PRIVATE KEY-----", "4 ", "eyJ", "a://", "password for ", "\"'"]
    {
        redact(&endless.repeat(20_000));
    }
}

proptest! {
    #[test]
    fn any_text_can_be_cleaned_and_a_cleaned_one_is_clean(text in "(password|PIN|key|secret|密码|token|is|是|:|=|[ -~äé\"]){0,60}") {
        let cleaned = redact(&text);
        prop_assert!(cleaned.secrets.len() <= KEPT);
        prop_assert_eq!(redact(&cleaned.text).text, cleaned.text);
    }

    #[test]
    fn whatever_follows_the_label_is_gone(secret in "[A-Za-z]{3,10}[0-9]{2,6}[A-Za-z]{2,10}", before in "[a-z ]{0,20}", after in "[a-z ]{0,20}") {
        let cleaned = redact(&format!("{before} password: {secret} {after}"));
        prop_assert!(!cleaned.text.contains(&secret));
        prop_assert!(cleaned.secrets.iter().any(|(_, taken)| *taken == secret));
    }
}
