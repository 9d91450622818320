//! Shows the console in a browser, signed in.
//!
//! A key on the command line of a browser could be read by everybody on the machine. So the browser is given the address of a page
//! here, which is there once, and sends it on to the console with the key in the fragment, which goes to no server.

use std::{io, time::Duration};

use data_encoding::HEXLOWER;
use kairo_core::{config::Secret, privacy};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::Error;

/// Longest request that is read, in bytes.
const LONGEST_REQUEST: u64 = 64 * 1024;
/// How long a connection may take to ask.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
/// How long a browser may take to start.
const OPENED_WITHIN: Duration = Duration::from_secs(60);

/// Where people look at what agents do, at this gateway.
pub(crate) fn console_url(gateway: &str) -> String {
    format!("{}/console/", gateway.trim_end_matches('/'))
}

/// The same, signed in with the key, if there is one.
pub(crate) fn signed_in_url(gateway: &str, key: Option<&Secret>) -> String {
    let Some(key) = key else { return console_url(gateway) };
    let fragment = url::form_urlencoded::Serializer::new(String::new()).append_pair("key", key.expose()).finish();
    format!("{}#{fragment}", console_url(gateway))
}

/// Shows the console in a browser, and returns when the browser has been sent there.
///
/// # Errors
/// When there is no browser, or none comes within a minute.
pub(crate) async fn open_console(gateway: &str, key: Option<&Secret>) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::file("listen on", "127.0.0.1"))?;
    let secret = privacy::new_key().map_err(Error::file("make an address on", "127.0.0.1"))?;
    let path = format!("/{}", HEXLOWER.encode(&secret));
    let address = listener.local_addr().map_err(Error::file("listen on", "127.0.0.1"))?;
    let page = format!("http://{address}{path}");
    open::that_detached(&page).map_err(|error| {
        Error::Advice(format!("no browser could be started ({error}): `kairo console --print` shows the address"))
    })?;
    let sent = timeout(OPENED_WITHIN, send_on(&listener, &path, &signed_in_url(gateway, key))).await;
    sent.map_err(|_| {
        let seconds = OPENED_WITHIN.as_secs();
        Error::Advice(format!(
            "no browser came within {seconds} seconds: open the address that `kairo console --print` shows"
        ))
    })
}

/// Sends the first who asks for `path` on to `target`.
async fn send_on(listener: &TcpListener, path: &str, target: &str) {
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        if let Ok(Ok(true)) = timeout(ASKED_WITHIN, answer(connection, path, target)).await {
            return;
        }
    }
}

/// Whether it was asked for `path`.
async fn answer(mut connection: TcpStream, path: &str, target: &str) -> io::Result<bool> {
    let (reader, mut writer) = connection.split();
    let mut lines = BufReader::new(reader.take(LONGEST_REQUEST)).lines();
    let request = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let is_it = request.split(' ').nth(1) == Some(path);
    let head = match is_it {
        true => format!("303 See Other\r\nlocation: {target}\r\nreferrer-policy: no-referrer"),
        false => "404 Not Found".to_owned(),
    };
    let rest = "cache-control: no-store\r\nconnection: close\r\ncontent-length: 0";
    writer.write_all(format!("HTTP/1.1 {head}\r\n{rest}\r\n\r\n").as_bytes()).await?;
    writer.shutdown().await?;
    Ok(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_knows_the_page_is_sent_on_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let target = signed_in_url("http://127.0.0.1:7420", Some(&Secret::new("a b#c".to_owned())));
        assert_eq!(target, "http://127.0.0.1:7420/console/#key=a+b%23c");
        let serving = tokio::spawn({
            let target = target.clone();
            async move { send_on(&listener, "/secret", &target).await }
        });
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        assert_eq!(client.get(format!("{base}/other")).send().await.unwrap().status(), 404);
        let answer = client.get(format!("{base}/secret")).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()), (303, target.as_str()));
        serving.await.unwrap();
        assert!(client.get(format!("{base}/secret")).send().await.is_err());
    }
}
