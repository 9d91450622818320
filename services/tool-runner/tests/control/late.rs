//! Tests requests that change something: one that was sent and not answered in time is in doubt, and settled by a late
//! answer.

use serde_json::json;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::kairo::{Call, Decided, Kairo, failed, said};

const DEADLINE: Duration = Duration::from_secs(60);

/// A shop that is paid by POST, and a Kairo that pays there with a time limit in milliseconds.
struct Shop {
    till: TcpListener,
    kairo: Kairo,
}

impl Shop {
    async fn open(timeout_ms: u64) -> Self {
        let till = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/pay", till.local_addr().unwrap());
        let tool = json!([{ "name": "shop.pay", "description": "Pays.", "method": "POST", "url": url,
            "schema": { "type": "object" }, "timeout_ms": timeout_ms }]);
        let env = [
            ("KAIRO_TOOL_RUNNER__TOOLS__HTTP", tool.to_string()),
            ("KAIRO_TOOL_RUNNER__CANCEL_GRACE_MS", "100".to_owned()),
        ];
        Self { till, kairo: Kairo::start(1, &env).await }
    }

    /// A payment whose request has arrived, and its connection.
    async fn payment(&self) -> (Decided, TcpStream) {
        let decided =
            self.kairo.decide(Call { tool: "shop.pay", arguments: json!({ "cents": 5 }), target: None }).await;
        let (mut connection, _) = timeout(DEADLINE, self.till.accept()).await.expect("nobody paid").unwrap();
        let mut request = [0; 1];
        connection.read_exact(&mut request).await.unwrap();
        (decided, connection)
    }

    /// Returns true if a further payment is waiting to be accepted.
    fn is_paid_again(&self) -> bool {
        use futures::FutureExt as _;
        self.till.accept().now_or_never().is_some()
    }

    async fn results(&self, payment: &Decided) -> usize {
        let log = self.kairo.log().await;
        let of_it = |body: &kairo_proto::Body| matches!(body, kairo_proto::Body::ToolResult(result) if result.action_id == payment.action.to_string());
        log.iter().filter(|record| of_it(&record.body)).count()
    }
}

async fn answer(mut connection: TcpStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    connection.write_all((head + body).as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_payment_that_is_answered_after_its_limit_is_in_doubt_until_then() {
    let shop = Shop::open(300).await;
    for (status, body, ok) in [("200 OK", r#"{"receipt":7}"#, true), ("402 Payment Required", "no money", false)] {
        let (payment, connection) = shop.payment().await;
        let (result, _) = shop.kairo.result(payment.action).await;
        let (kind, message) = failed(&result);
        assert_eq!(kind, "in_doubt");
        assert!(message.contains("within 300 ms") && message.contains("find out"), "{message}");
        answer(connection, status, body).await;
        let late = shop.kairo.late(payment.action).await;
        assert_eq!(late.ok, ok, "{late:?}");
        match ok {
            true => assert_eq!(said(&late), json!({ "receipt": 7 })),
            false => assert_eq!(failed(&late), ("failed", "HTTP 402: no money")),
        }
        assert!(late.outside.iter().any(|mark| mark.starts_with("web:http://127.0.0.1")), "{late:?}");
        assert_eq!(shop.results(&payment).await, 2);
    }
    assert!(!shop.is_paid_again(), "each was paid once");
    shop.kairo.stop().await;
}

#[tokio::test]
async fn a_payment_that_is_canceled_when_it_is_out_is_in_doubt_until_it_is_answered() {
    let shop = Shop::open(600_000).await;
    let (payment, connection) = shop.payment().await;
    let told = said(&shop.kairo.cancel(payment.action).await);
    assert_eq!((&told["status"], &told["error"]["kind"]), (&json!("in_doubt"), &json!("in_doubt")), "{told}");
    answer(connection, "200 OK", r#"{"receipt":8}"#).await;
    assert_eq!(said(&shop.kairo.late(payment.action).await), json!({ "receipt": 8 }));
    shop.kairo.stop().await;
}

#[tokio::test]
async fn a_payment_whose_runner_is_killed_is_in_doubt_and_not_made_again() {
    let mut shop = Shop::open(600_000).await;
    let (payment, connection) = shop.payment().await;
    shop.kairo.kill9(0).await;
    shop.kairo.another().await;
    let (result, _) = shop.kairo.result(payment.action).await;
    assert_eq!(failed(&result).0, "in_doubt");
    drop(connection);

    // One that is in doubt already stays so.
    let (payment, _connection) = shop.payment().await;
    let told = said(&shop.kairo.cancel(payment.action).await);
    assert_eq!(told["status"], "in_doubt", "{told}");
    shop.kairo.kill9(1).await;
    shop.kairo.another().await;
    let next = shop.kairo.decide(Call { tool: "tools.now", arguments: json!({}), target: None }).await;
    assert!(shop.kairo.result(next.action).await.0.ok);
    assert_eq!(shop.results(&payment).await, 1);
    assert!(!shop.is_paid_again(), "each was paid once");
    shop.kairo.stop().await;
}
