//! A stand-in for a web search: one address on this machine that answers as SearXNG does, always with the results that
//! an example brings along.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::Error;

/// Longest request that is read, in bytes.
const LONGEST_REQUEST: u64 = 64 * 1024;

/// Answers until it is dropped.
pub struct SearchStub {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl SearchStub {
    /// Answers every search with this body.
    pub async fn serve(results: &Value) -> Result<Self, Error> {
        let listening = TcpListener::bind("127.0.0.1:0").await;
        let listener = listening.map_err(Error::file("listen on", "127.0.0.1"))?;
        let address = listener.local_addr().map_err(Error::file("listen on", "127.0.0.1"))?;
        let body = results.to_string();
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let body = body.clone();
                // Whoever hangs up in between needs no answer.
                tokio::spawn(async move { drop(answer(connection, &body).await) });
            }
        });
        Ok(Self { address, serving })
    }

    /// For `KAIRO_TOOL_RUNNER__WEB_SEARCH__URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for SearchStub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut connection: TcpStream, body: &str) -> std::io::Result<()> {
    let (reader, mut writer) = connection.split();
    let mut lines = BufReader::new(tokio::io::AsyncReadExt::take(reader, LONGEST_REQUEST)).lines();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    writer.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn every_search_finds_the_same() {
        let results = json!({"results": [{"title": "Pricing", "url": "https://acme.example/"}]});
        let search = SearchStub::serve(&results).await.unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let found = client.get(format!("{}/search?q=x&format=json", search.url())).send().await.unwrap();
        let found: Value = serde_json::from_slice(&found.bytes().await.unwrap()).unwrap();
        assert_eq!(found, results);
    }
}
