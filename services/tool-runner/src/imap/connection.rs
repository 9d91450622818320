//! A connection to an IMAP server, of which nothing is believed but that it is a mailbox: every answer is bounded in size
//! and time.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_imap::error::Error as AnswerError;
use async_imap::extensions::idle::IdleResponse;
use async_imap::types::{Uid, UnsolicitedResponse};
use async_imap::{Client, Session};
use futures::TryStreamExt as _;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, crypto::ring};

use super::account::{ImapAccount, ImapConfig};

/// Most bytes of an answer beyond the requested mail.
const ROOM_BYTES: usize = 2 * 1024 * 1024;
/// Most mail numbers requested at once: their list must fit into an answer.
const NUMBERS: Uid = 100_000;

/// The reason an account cannot be used for now. Never contains its password.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {why}")]
pub struct ConnectionError {
    doing: &'static str,
    why: String,
}

/// The metadata of one mail in the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailMetadata {
    pub uid: Uid,
    pub size: u32,
    /// When the server got it, in seconds since 1970.
    pub received: Option<i64>,
}

/// The mailbox when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedMailbox {
    pub uid_validity: u32,
    /// The number that the next mail will have, at least.
    pub uid_next: Option<Uid>,
}

pub struct ImapConnection {
    account: Arc<ImapAccount>,
    session: Session<BoundedStream>,
    /// Returns true if the server announced mail since the last call, while it answered another command.
    told: Box<dyn Fn() -> bool + Send>,
    /// The number of the last mail when the mailbox was opened.
    last: Uid,
    limit: Duration,
    interval: Duration,
    idle: bool,
}

impl ImapConnection {
    /// Connects and logs in.
    pub async fn open(account: &Arc<ImapAccount>, config: &ImapConfig) -> Result<Self, ConnectionError> {
        let limit = Duration::from_millis(config.timeout_ms);
        let failed = |doing, error: &dyn fmt::Display| connection_error(account, doing, &error.to_string());
        let connecting =
            timeout(limit, connect_stream(account)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let wire = connecting.map_err(|error| failed("connecting", &error))?;
        let mut client = Client::new(BoundedStream { wire, left: ROOM_BYTES });
        let session = timeout(limit, async {
            client.read_response().await?.ok_or(AnswerError::ConnectionLost)?;
            client.login(&account.user, &account.password).await.map_err(|(error, _)| error)
        });
        let mut session = await_answer(account, "logging in", session).await?;
        let can = await_answer(account, "asking what it can", timeout(limit, session.capabilities())).await?;
        let idle = config.idle && can.has_str("IDLE");
        let interval = Duration::from_millis(config.interval_ms);
        let unasked = session.unsolicited_responses.clone();
        let told = Box::new(move || {
            let said = std::iter::from_fn(|| unasked.try_recv().ok());
            said.fold(false, |told, said| told | matches!(said, UnsolicitedResponse::Exists(_)))
        });
        Ok(Self { account: account.clone(), session, told, last: 0, limit, interval, idle })
    }

    /// Opens the mailbox for reading: nothing in it is changed, no mail becomes one that was seen.
    pub async fn examine(&mut self) -> Result<OpenedMailbox, ConnectionError> {
        const DOING: &str = "opening the mailbox";
        self.session.get_mut().left = ROOM_BYTES;
        let mailbox = self.session.examine(&self.account.mailbox);
        let mailbox = await_answer(&self.account, DOING, timeout(self.limit, mailbox)).await?;
        let numberless = || connection_error(&self.account, DOING, "the server does not number mails (UIDVALIDITY)");
        let uid_validity = mailbox.uid_validity.ok_or_else(numberless)?;
        self.last = mailbox.uid_next.map_or(0, |next| next.saturating_sub(1));
        Ok(OpenedMailbox { uid_validity, uid_next: mailbox.uid_next })
    }

    /// The numbers of mails after this one, in order: some, if there are any.
    pub async fn uids_after(&mut self, uid: Uid) -> Result<Vec<Uid>, ConnectionError> {
        // Of that, the answers take account.
        (self.told)();
        let mut before = uid;
        while let Some(first) = before.checked_add(1) {
            let until = first.checked_add(NUMBERS - 1).filter(|until| *until < self.last);
            let range = until.map_or_else(|| format!("UID {first}:*"), |until| format!("UID {first}:{until}"));
            self.session.get_mut().left = ROOM_BYTES;
            let found = timeout(self.limit, self.session.uid_search(range));
            let found = await_answer(&self.account, "looking for mail", found).await?;
            // Where it is asked for those up to the last one, that is among them, however small its number.
            let mut uids: Vec<Uid> = found.into_iter().filter(|found| *found > uid).collect();
            uids.sort_unstable();
            match until {
                Some(until) if uids.is_empty() => before = until,
                _ => return Ok(uids),
            }
        }
        Ok(Vec::new())
    }

    /// Fetches the metadata of these mails; leaves out those that are gone.
    pub async fn fetch_metadata(&mut self, uids: &[Uid]) -> Result<Vec<MailMetadata>, ConnectionError> {
        self.session.get_mut().left = ROOM_BYTES;
        let set = uids.iter().map(Uid::to_string).collect::<Vec<_>>().join(",");
        let told = async {
            let fetched = self.session.uid_fetch(set, "(UID INTERNALDATE RFC822.SIZE)").await?;
            let about = fetched.try_filter_map(async |mail| {
                let received = mail.internal_date().map(|date| date.timestamp());
                Ok(mail.uid.map(|uid| MailMetadata { uid, size: mail.size.unwrap_or(0), received }))
            });
            about.try_collect::<Vec<MailMetadata>>().await
        };
        let mut told = await_answer(&self.account, "asking about mails", timeout(self.limit, told)).await?;
        told.retain(|about| uids.contains(&about.uid));
        told.sort_unstable_by_key(|about| (about.uid, about.received.is_none()));
        told.dedup_by_key(|about| about.uid);
        Ok(told)
    }

    /// The first `max` bytes of a mail; none when it is gone.
    pub async fn fetch_mail(&mut self, uid: Uid, max: u32) -> Result<Option<Vec<u8>>, ConnectionError> {
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        self.session.get_mut().left = ROOM_BYTES.saturating_add(most);
        let fetched = async {
            let fetched = self.session.uid_fetch(uid.to_string(), format!("(UID BODY.PEEK[]<0.{max}>)")).await?;
            let body = fetched.try_filter_map(async |mail| {
                let body = mail.body().filter(|_| mail.uid == Some(uid));
                Ok(body.map(|body| body.get(..most).unwrap_or(body).to_vec()))
            });
            Ok(body.try_collect::<Vec<_>>().await?.into_iter().next())
        };
        await_answer(&self.account, "fetching a mail", timeout(self.limit, fetched)).await
    }

    /// Waits until something may have come.
    pub async fn wait(mut self) -> Result<Self, ConnectionError> {
        const DOING: &str = "waiting for mail";
        self.session.get_mut().left = ROOM_BYTES;
        if !self.idle {
            sleep(self.interval).await;
            return Ok(self);
        }
        let Self { account, session, told: came, last, limit, interval, idle } = self;
        let mut waiting = session.idle();
        await_answer(&account, DOING, timeout(limit, waiting.init())).await?;
        // What it told before it was waited for, it does not tell again.
        if !came() {
            let (told, _interrupt) = waiting.wait_with_timeout(interval);
            // What else the server says meanwhile puts off the timeout within.
            match timeout(interval, told).await {
                Ok(Ok(IdleResponse::NewData(_) | IdleResponse::Timeout)) | Err(_) => {}
                Ok(Ok(IdleResponse::ManualInterrupt)) => {
                    return Err(connection_error(&account, DOING, "the server hung up"));
                }
                Ok(Err(error)) => return Err(connection_error(&account, DOING, &describe_error(&error))),
            }
        }
        let session = await_answer(&account, DOING, timeout(limit, waiting.done())).await?;
        Ok(Self { account, session, told: came, last, limit, interval, idle })
    }
}

async fn await_answer<T>(
    account: &ImapAccount,
    doing: &'static str,
    answer: tokio::time::Timeout<impl Future<Output = Result<T, AnswerError>>>,
) -> Result<T, ConnectionError> {
    match answer.await {
        Ok(answer) => answer.map_err(|error| connection_error(account, doing, &describe_error(&error))),
        Err(_) => Err(connection_error(account, doing, "the server did not answer in time (timeout_ms)")),
    }
}

fn connection_error(account: &ImapAccount, doing: &'static str, why: &str) -> ConnectionError {
    ConnectionError { doing, why: account.redact_text(why) }
}

/// In words. What a server sent that is no answer is not repeated: it may be somebody's mail.
fn describe_error(error: &AnswerError) -> String {
    match error {
        AnswerError::Bad(text) | AnswerError::No(text) => format!("the server refused: {text}"),
        AnswerError::ConnectionLost => "the server hung up".to_owned(),
        AnswerError::Io(error) if error.to_string().contains("during parsing of") => {
            "the server's answer makes no sense".to_owned()
        }
        AnswerError::Io(error) => error.to_string(),
        _ => "the server's answer makes no sense".to_owned(),
    }
}

async fn connect_stream(account: &ImapAccount) -> io::Result<Box<dyn Wire>> {
    let stream = TcpStream::connect((account.host.as_str(), account.port)).await?;
    stream.set_nodelay(true)?;
    if !account.encrypted {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(account.host.clone()).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(io::Error::other)?
        .with_no_client_auth();
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

trait Wire: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin> Wire for T {}

/// A stream that ends with an error when more comes than was asked for.
#[derive(Debug)]
struct BoundedStream {
    wire: Box<dyn Wire>,
    /// Bytes that may still be read.
    left: usize,
}

impl AsyncRead for BoundedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) {
            match self.left.checked_sub(buf.filled().len() - before) {
                Some(left) => self.left = left,
                None => return Poll::Ready(Err(io::Error::other("the server's answer is too long"))),
            }
        }
        read
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}
