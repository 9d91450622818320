//! The address a browser comes back to after a person signed in: a server on this machine for one request.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

use crate::Error;

/// Longest head of a request that is read, in bytes.
const MAX_HEAD: usize = 16_384;
/// So long a browser may take to say what it wants.
const READING: std::time::Duration = std::time::Duration::from_secs(5);
const PAGE: &str =
    "<!doctype html><meta charset=utf-8><title>Kairo</title><p>You can close this page and go back to the terminal.";

pub(super) struct OauthCallback {
    listener: TcpListener,
    uri: Url,
}

impl OauthCallback {
    /// Listens where `uri` says; its port becomes the one that was free where it is 0.
    pub async fn listen(uri: &mut Url) -> Result<Self, Error> {
        let advice = |why: String| Error::Advice(format!("--redirect-uri: {why}"));
        let host = match uri.host() {
            Some(url::Host::Domain("localhost")) => "127.0.0.1".to_owned(),
            Some(url::Host::Ipv4(address)) if address.is_loopback() => address.to_string(),
            Some(url::Host::Ipv6(address)) if address.is_loopback() => format!("[{address}]"),
            _ => return Err(advice("must be http:// on 127.0.0.1, [::1] or localhost".to_owned())),
        };
        let port = uri.port().unwrap_or(80);
        let listening = async {
            let listener = TcpListener::bind(format!("{host}:{port}")).await?;
            let port = listener.local_addr()?.port();
            std::io::Result::Ok((listener, port))
        };
        let (listener, port) = listening.await.map_err(|error| advice(format!("cannot listen there: {error}")))?;
        uri.set_port(Some(port)).map_err(|()| advice("cannot have a port".to_owned()))?;
        Ok(Self { listener, uri: uri.clone() })
    }

    /// The address that the browser comes back to, with what the authorization server added.
    pub async fn wait_for_address(self) -> Result<String, Error> {
        loop {
            let accepted = self.listener.accept().await;
            let (connection, _) = accepted.map_err(|error| Error::Advice(format!("cannot listen: {error}")))?;
            // Browsers also ask for icons, and connect without saying anything.
            if let Ok(Some(address)) = timeout(READING, self.answer_request(connection)).await {
                return Ok(address);
            }
        }
    }

    async fn answer_request(&self, mut connection: TcpStream) -> Option<String> {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
            let mut piece = [0; 1024];
            match connection.read(&mut piece).await.ok()? {
                0 => break,
                read => head.extend_from_slice(piece.get(..read)?),
            }
        }
        let address = callback_address(&self.uri, &String::from_utf8_lossy(&head));
        let (status, page) = if address.is_some() { ("200 OK", PAGE) } else { ("404 Not Found", "") };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        connection.write_all(answer.as_bytes()).await.ok()?;
        let _ = connection.shutdown().await;
        address
    }
}

/// The address that a request is for, if it is the one that is waited for.
fn callback_address(uri: &Url, head: &str) -> Option<String> {
    let mut words = head.lines().next()?.split(' ');
    let method = words.next()?;
    let target = words.next()?;
    let asked = uri.join(target).ok()?;
    let is_answer = asked.query_pairs().any(|(name, _)| name == "code" || name == "error");
    (method == "GET" && asked.origin() == uri.origin() && asked.path() == uri.path() && is_answer)
        .then(|| asked.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_is_taken() {
        let uri = Url::parse("http://127.0.0.1:7/callback").unwrap();
        for (head, wanted) in [
            ("GET /callback?code=c&state=s HTTP/1.1", Some("http://127.0.0.1:7/callback?code=c&state=s")),
            ("GET /callback?error=access_denied HTTP/1.1", Some("http://127.0.0.1:7/callback?error=access_denied")),
            ("GET /favicon.ico HTTP/1.1", None),
            ("GET /callback HTTP/1.1", None),
            ("POST /callback?code=c HTTP/1.1", None),
            ("GET http://evil.example/callback?code=c HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(callback_address(&uri, head).as_deref(), wanted, "{head}");
        }
    }

    #[tokio::test]
    async fn a_browser_comes_back_after_it_asked_for_an_icon() {
        let mut uri = Url::parse("http://127.0.0.1:0/callback").unwrap();
        let callback = OauthCallback::listen(&mut uri).await.unwrap();
        assert_ne!(uri.port(), Some(0));
        let browse = async |path: &str| reqwest::get(uri.join(path).unwrap()).await.unwrap().status().as_u16();
        let browser = async { (browse("/favicon.ico").await, browse("/callback?code=c&state=s").await) };
        let (address, statuses) = tokio::join!(callback.wait_for_address(), browser);
        assert_eq!(address.unwrap(), format!("{uri}?code=c&state=s"));
        assert_eq!(statuses, (404, 200));
    }
}
