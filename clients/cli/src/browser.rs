//! Shows the console in a browser, signed in.
//!
//! A key on the command line of a browser could be read by everybody on the machine. So the browser is given the address of a page
//! here, which is there once, answers no other user of the machine, and sends it on to the console with the key in the fragment, which
//! goes to no server.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt,
    time::Duration,
};

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
/// The longest time a connection may take to send its request.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
/// The longest time a browser may take to start.
const OPENED_WITHIN: Duration = Duration::from_secs(60);

/// Returns the address of the console at this gateway.
pub(crate) fn console_url(gateway: &str) -> String {
    format!("{}/console/", gateway.trim_end_matches('/'))
}

/// The console's address with the key in its fragment, by which the console signs in; without a key the plain address.
pub(crate) fn sign_in_url(gateway: &str, key: Option<&Secret>) -> String {
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
    let sent = timeout(OPENED_WITHIN, redirect_browser(&listener, &path, &sign_in_url(gateway, key))).await;
    sent.map_err(|_| {
        let seconds = OPENED_WITHIN.as_secs();
        Error::Advice(format!(
            "no browser came within {seconds} seconds: open the address that `kairo console --print` shows"
        ))
    })
}

/// Sends the first who asks for `path` on to `target`. Other users of the machine can read the path, as an argument of the browser.
async fn redirect_browser(listener: &TcpListener, path: &str, target: &str) {
    loop {
        let Ok((connection, peer)) = listener.accept().await else { continue };
        if is_other_user(peer) {
            continue;
        }
        if let Ok(Ok(true)) = timeout(ASKED_WITHIN, answer(connection, path, target)).await {
            return;
        }
    }
}

/// Returns true if another user of this machine holds the other end of a connection, as far as Linux tells.
fn is_other_user(peer: SocketAddr) -> bool {
    let own = fs::metadata("/proc/self").ok().map(|process| process.uid());
    let connections = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    match (own, owner(&connections, peer)) {
        (Some(own), Some(owner)) => owner != own,
        _ => false,
    }
}

/// The user id of a socket with this local address, by the table of `/proc/net/tcp`.
fn owner(connections: &str, local: SocketAddr) -> Option<u32> {
    let IpAddr::V4(address) = local.ip() else { return None };
    let wanted = format!("{:08X}:{:04X}", u32::from_ne_bytes(address.octets()), local.port());
    let fields = connections.lines().map(|line| line.split_whitespace());
    let mut found = fields.filter_map(|mut fields| (fields.nth(1)? == wanted).then(|| fields.nth(5))?);
    found.next()?.parse().ok()
}

/// Answers one request; true if it asked for `path`.
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

    #[test]
    fn the_owner_of_a_connection_is_found_by_its_address() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1D0C 0100007F:8B3E 01 00000000:00000000 00:00000000 00000000  1000        0 1\n   \
            1: 0100007F:8B3E 0100007F:1D0C 01 00000000:00000000 00:00000000 00000000  1001        0 2\n";
        let peer = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(owner(table, peer(0x8B3E)), Some(1001));
        assert_eq!(owner(table, peer(0x1D0C)), Some(1000));
        assert_eq!(owner(table, peer(1)), None);
    }

    #[tokio::test]
    async fn whoever_knows_the_page_is_sent_on_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let target = sign_in_url("http://127.0.0.1:7420", Some(&Secret::new("a b#c".to_owned())));
        assert_eq!(target, "http://127.0.0.1:7420/console/#key=a+b%23c");
        let serving = tokio::spawn({
            let target = target.clone();
            async move { redirect_browser(&listener, "/secret", &target).await }
        });
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        assert_eq!(client.get(format!("{base}/other")).send().await.unwrap().status(), 404);
        let answer = client.get(format!("{base}/secret")).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()), (303, target.as_str()));
        serving.await.unwrap();
        assert!(client.get(format!("{base}/secret")).send().await.is_err());
    }
}
