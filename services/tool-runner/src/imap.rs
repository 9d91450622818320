//! Mail of agents that have a mailbox on an IMAP server: fetched into their Maildirs, where [`crate::arrivals`] finds it.
//!
//! Of the replicas that share the agents' folders, one at a time holds an account ([`maildir_store`]); the others stand by.
//! The mailbox is opened for reading only, so fetching changes nothing on the server.

mod account;
mod connection;
mod maildir_store;

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kairo_core::ids::Name;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::account::ImapAccount;
pub use self::account::ImapConfig;
use self::connection::{ConnectionError, ImapConnection};
use self::maildir_store::{FetchPosition, MaildirStore};
use crate::builtin::workspace::FolderError;
use crate::config::ToolsConfig;

/// Pause before the first further try, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Times that one mail may break a connection off before it is left out.
const TRIES: u32 = 10;
/// Interval at which a standby replica checks whether it is needed.
const STANDBY: Duration = Duration::from_secs(2);

/// Fetches mail until `shutdown`; returns at once where no account is configured.
pub async fn fetch(config: &ToolsConfig, shutdown: &CancellationToken) {
    let Some(root) = &config.workspace.root else { return };
    let fetchers = config.mail.imap.iter().filter_map(|account| Fetcher::new(root, config, account));
    let running: Vec<_> = fetchers.map(async |fetcher| match fetcher.run().await {}).collect();
    let _ = shutdown.run_until_cancelled(join_all(running)).await;
}

struct Fetcher {
    account: Arc<ImapAccount>,
    config: ImapConfig,
    keeping: MaildirStore,
}

/// The mail that could not be fetched last, and how often in a row.
#[derive(Debug, Default)]
struct Trouble {
    uid: u32,
    tries: u32,
}

impl Trouble {
    fn record_failure(&mut self, uid: u32) {
        let tries = if self.uid == uid { self.tries + 1 } else { 1 };
        *self = Self { uid, tries };
    }

    fn is_lasting(&self, uid: u32) -> bool {
        self.uid == uid && self.tries >= TRIES
    }
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Fetcher {
    /// None for an account that validation refuses.
    fn new(root: &Path, tools: &ToolsConfig, config: &ImapConfig) -> Option<Self> {
        let account = Arc::new(ImapAccount::parse(config.url.expose()).ok()?);
        let agent = Name::parse(&config.agent).ok()?;
        let max_files = tools.workspace.max_files;
        let keeping = MaildirStore { root: root.to_owned(), agent, key: account.key(), max_files };
        Some(Self { account, config: config.clone(), keeping })
    }

    async fn run(&self) -> Infallible {
        let _held = self.wait_for_lock().await;
        let mut pause = FIRST_PAUSE;
        let mut trouble = Trouble::default();
        loop {
            let mut caught_up = false;
            let error = match self.fetch_until_failure(&mut trouble, &mut caught_up).await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            if caught_up {
                pause = FIRST_PAUSE;
            }
            let agent = &self.keeping.agent;
            let account = &self.account;
            tracing::warn!(%agent, %account, %error, again_in = ?pause, "mail cannot be fetched");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until no other replica has the account. The handle keeps them from it.
    async fn wait_for_lock(&self) -> OwnedFd {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.run_blocking(MaildirStore::try_lock).await {
                Ok(Some(held)) => return held,
                Ok(None) => sleep(STANDBY).await,
                Err(error) => {
                    let agent = &self.keeping.agent;
                    let account = &self.account;
                    tracing::warn!(%agent, %account, %error, "the agent's mailbox cannot be used");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Fetches what there is and what comes, until something fails.
    async fn fetch_until_failure(&self, trouble: &mut Trouble, caught_up: &mut bool) -> Result<Infallible, FetchError> {
        let before = self.run_blocking(MaildirStore::recover_position).await?;
        let mut connection = ImapConnection::open(&self.account, &self.config).await?;
        let mut mailbox = connection.examine().await?;
        if before.is_none() && !self.config.existing && mailbox.uid_next.is_none() {
            mailbox.uid_next = connection.uids_after(0).await?.last().map(|last| last.saturating_add(1));
        }
        let mut state = FetchPosition::resume_in(before, mailbox, self.config.existing);
        let agent = &self.keeping.agent;
        let account = &self.account;
        match before {
            Some(before) if before.uid_validity != state.uid_validity => {
                tracing::warn!(%agent, %account, "the server has numbered its mails anew; those that are older than what was fetched last are left out");
            }
            Some(_) => {}
            // From here on, what is there was there before.
            None => self.deliver(state, Vec::new()).await?,
        }
        tracing::info!(%agent, %account, "fetching mail");
        loop {
            self.catch_up(&mut connection, &mut state, trouble).await?;
            *caught_up = true;
            connection = connection.wait().await?;
        }
    }

    /// Fetches all mails that the state does not speak of.
    async fn catch_up(
        &self,
        connection: &mut ImapConnection,
        state: &mut FetchPosition,
        trouble: &mut Trouble,
    ) -> Result<(), FetchError> {
        loop {
            let uids = connection.uids_after(state.uid).await?;
            if uids.is_empty() {
                return Ok(());
            }
            for uids in uids.chunks(self.config.batch.max(1)) {
                self.fetch_batch(connection, uids, state, trouble).await?;
            }
        }
    }

    /// Fetches these mails and puts them into the mailbox together.
    async fn fetch_batch(
        &self,
        connection: &mut ImapConnection,
        uids: &[u32],
        state: &mut FetchPosition,
        trouble: &mut Trouble,
    ) -> Result<(), FetchError> {
        let Some(last) = uids.last() else { return Ok(()) };
        let mails = connection.fetch_metadata(uids).await?;
        let mut fetched = Vec::new();
        for (index, mail) in mails.iter().enumerate().filter(|(_, mail)| !state.was_fetched_before(mail)) {
            let agent = &self.keeping.agent;
            let account = &self.account;
            let uid = mail.uid;
            let size = mail.size;
            if trouble.is_lasting(uid) {
                tracing::error!(%agent, %account, uid, size, "a mail cannot be fetched and is left out");
                continue;
            }
            let bytes = match connection.fetch_mail(uid, self.config.max_mail_bytes).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(error) => {
                    trouble.record_failure(uid);
                    let before = mails.get(..index).unwrap_or_default();
                    self.deliver(state.advance_to(uid.saturating_sub(1), before), fetched).await?;
                    return Err(error.into());
                }
            };
            if size > self.config.max_mail_bytes {
                tracing::warn!(%agent, %account, uid, size, "a mail is cut off (max_mail_bytes)");
            }
            let validity = state.uid_validity;
            self.run_blocking(move |keeping| keeping.draft(validity, uid, &bytes)).await?;
            fetched.push(uid);
        }
        *state = state.advance_to(*last, &mails);
        Ok(self.deliver(*state, fetched).await?)
    }

    async fn deliver(&self, state: FetchPosition, uids: Vec<u32>) -> Result<(), FolderError> {
        self.run_blocking(move |keeping| keeping.deliver(&state, &uids)).await
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MaildirStore) -> Result<T, FolderError> + Send + 'static,
    ) -> Result<T, FolderError> {
        let keeping = self.keeping.clone();
        let broke_off = |_| FolderError::Io { name: "a mailbox".into(), source: std::io::Error::other("it panicked") };
        tokio::task::spawn_blocking(move || work(&keeping)).await.map_err(broke_off)?
    }
}
