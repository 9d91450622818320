//! Mail that comes in: what is put into `mail/new` of an agent's folder becomes one event `email.received`, whoever
//! else watches the folder and whoever was killed meanwhile.
//!
//! The folders are watched; besides they are looked through at the start, when the system says that it lost track, and
//! every now and then. So what is read off a watch need not be complete, only quick. What has an event already, the log
//! knows ([`mail_announcer`]).

mod event;
mod folders;
mod mail_announcer;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use kairo_core::bus::{Bus, BusError};
use kairo_core::ids::Name;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::folders::{MailReadOutcome, Mailboxes};
use self::mail_announcer::MailAnnouncer;
use self::watch::{MailboxChange, MailboxWatch};
use crate::builtin::mail::{MaildirEntry, unseen_entry};
use crate::config::ToolsConfig;

/// Time without changes after which a file counts as complete, unless it is known to be. Also the delay before
/// something is tried again.
const SETTLED: Duration = Duration::from_secs(2);

/// Turns mail into events until `shutdown`; returns at once where there is no workspace or nothing is to be watched.
pub async fn watch(bus: &Bus, config: &ToolsConfig, shutdown: &CancellationToken) {
    let Some(root) = config.workspace.root.as_deref().filter(|_| config.mail.watch) else { return };
    let mut arrivals = Arrivals::new(bus, config, root);
    let _ = shutdown.run_until_cancelled(arrivals.run()).await;
}

struct Arrivals {
    mailboxes: Mailboxes,
    announced: MailAnnouncer,
    watch: MailboxWatch,
    rescan: Duration,
    /// Agents whose mailbox must be looked through again soon.
    again: BTreeSet<Name>,
}

impl Arrivals {
    fn new(bus: &Bus, config: &ToolsConfig, root: &Path) -> Self {
        Self {
            mailboxes: Mailboxes::new(root, config),
            announced: MailAnnouncer::new(bus),
            watch: MailboxWatch::new(root),
            rescan: Duration::from_millis(config.mail.rescan_ms),
            again: BTreeSet::new(),
        }
    }

    async fn run(&mut self) {
        self.scan_all_mailboxes().await;
        let mut next_scan = Instant::now() + self.rescan;
        let mut next_try = None;
        loop {
            if !self.again.is_empty() {
                next_try.get_or_insert(Instant::now() + SETTLED);
            }
            tokio::select! {
                biased;
                () = sleep_until(next_scan) => {
                    self.scan_all_mailboxes().await;
                    next_scan = Instant::now() + self.rescan;
                }
                () = sleep_until(next_try.unwrap_or(next_scan)), if next_try.is_some() => {
                    next_try = None;
                    for agent in std::mem::take(&mut self.again) {
                        self.scan_mailbox(&agent).await;
                    }
                }
                changes = self.watch.changes() => {
                    for change in changes {
                        self.handle_change(change).await;
                    }
                }
            }
        }
    }

    async fn handle_change(&mut self, change: MailboxChange) {
        match change {
            MailboxChange::Mail { agent, name } => {
                if let Some(entry) = unseen_entry(&name) {
                    self.announce_if_new(&agent, entry, true).await;
                }
            }
            MailboxChange::Unfinished { agent } => {
                self.again.insert(agent);
            }
            MailboxChange::Folder { agent } => self.scan_mailbox(&agent).await,
            MailboxChange::Lost => self.scan_all_mailboxes().await,
        }
    }

    async fn scan_all_mailboxes(&mut self) {
        self.watch.watch_root();
        match self.mailboxes.agents().await {
            Ok(agents) => {
                for agent in agents {
                    self.scan_mailbox(&agent).await;
                }
            }
            Err(error) => tracing::warn!(%error, "agents' folders cannot be looked through for mail"),
        }
    }

    /// Watches the mailbox of an agent and takes what is there and has no event.
    async fn scan_mailbox(&mut self, agent: &Name) {
        self.watch.watch_agent(agent);
        let entries = match self.mailboxes.list_new_mail(agent).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::debug!(%agent, %error, "a mailbox cannot be looked through");
                return;
            }
        };
        if entries.is_empty() {
            return;
        }
        if let Err(error) = self.announced.catch_up(agent).await {
            self.retry_later(agent, &error);
            return;
        }
        for entry in entries {
            self.announce_if_new(agent, entry, false).await;
        }
    }

    /// Announces a mail unless that has been done. `whole` says that nobody writes to its file any more.
    async fn announce_if_new(&mut self, agent: &Name, entry: MaildirEntry, whole: bool) {
        if self.announced.has_announced(agent, &entry.id) {
            return;
        }
        let id = entry.id.clone();
        match self.mailboxes.read_mail(agent, entry, whole).await {
            Ok(MailReadOutcome::Mail(arrival)) => match self.announced.announce(agent, &id, *arrival).await {
                Ok(true) => tracing::info!(%agent, email = id, "mail came in"),
                Ok(false) => {}
                Err(error) => self.retry_later(agent, &error),
            },
            Ok(MailReadOutcome::Unfinished) => {
                self.again.insert(agent.clone());
            }
            Ok(MailReadOutcome::Nothing) => {}
            Err(error) => tracing::debug!(%agent, %error, "a mail cannot be read"),
        }
    }

    fn retry_later(&mut self, agent: &Name, error: &BusError) {
        tracing::warn!(%agent, %error, "mail that came in is not announced yet, trying again");
        self.again.insert(agent.clone());
    }
}
