//! The sign-ins of users at one server, each user with their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::Timestamp;
use kairo_core::ids::Name;
use tokio::sync::Notify;

use super::login::SignOutOutcome;
use super::sign_in::SignIn;
use super::sign_in_record::LatestSignIn;
use super::vault::VaultError;

/// The sign-ins at a server whose `oauth` says `per = "user"`.
#[derive(Debug)]
pub struct UserSignIns {
    /// State of the server itself, which holds no tokens.
    common: Arc<SignIn>,
    /// The sign-ins in use, one per user, so that this replica renews a token once.
    known: Mutex<BTreeMap<Name, Weak<SignIn>>>,
    changed: Notify,
}

/// A user who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedInUser {
    pub user: Name,
    pub scopes: Vec<String>,
    /// When the user signed in; none where a former build noted it.
    pub since: Option<Timestamp>,
}

impl UserSignIns {
    pub fn new(common: Arc<SignIn>) -> Self {
        Self { common, known: Mutex::default(), changed: Notify::new() }
    }

    /// That of a user.
    pub fn for_user(&self, user: &Name) -> Arc<SignIn> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sign_in) = known.get(user).and_then(Weak::upgrade) {
            return sign_in;
        }
        known.retain(|_, sign_in| sign_in.strong_count() > 0);
        let sign_in = Arc::new(self.common.for_user(user));
        known.insert(user.clone(), Arc::downgrade(&sign_in));
        sign_in
    }

    /// The users who are signed in, whoever signed in last first; at most 1 024.
    ///
    /// # Errors
    /// When the stored record cannot be read.
    pub async fn list_signed_in(&self) -> Result<Vec<SignedInUser>, VaultError> {
        let mut signed_in = Vec::new();
        for (user, record) in self.common.vault.load_users(&self.common.server).await? {
            let (Ok(user), Some(tokens)) = (Name::parse(&user), record.grant) else { continue };
            signed_in.push(SignedInUser { user, scopes: tokens.scopes, since: record.since });
        }
        signed_in.sort_by(|one, other| other.since.cmp(&one.since).then_with(|| one.user.cmp(&other.user)));
        Ok(signed_in)
    }

    /// Returns the last sign-in, unless that user has signed out.
    ///
    /// # Errors
    /// When the stored record cannot be read.
    pub async fn latest_sign_in(&self) -> Result<Option<LatestSignIn>, VaultError> {
        Ok(self.common.vault.load(&self.common.key).await?.record.latest)
    }

    /// Ends the sign-in of a user.
    ///
    /// # Errors
    /// When the stored record cannot be read or written.
    pub async fn sign_out(&self, user: &Name) -> Result<SignOutOutcome, String> {
        let ended = self.for_user(user).sign_out().await;
        self.changed.notify_one();
        ended
    }

    /// Says that somebody signed in, or out.
    pub fn announce_change(&self) {
        self.changed.notify_one();
    }

    /// Waits until this replica heard that somebody signed in or out.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }
}

/// The sign-ins at a server: one for all users, or one per user.
#[derive(Debug, Clone)]
pub enum SignIns {
    /// By one sign-in, with which every user's calls act.
    Server(Arc<SignIn>),
    /// By one of each user.
    Users(Arc<UserSignIns>),
}

impl SignIns {
    /// The sign-in that a request is about.
    ///
    /// # Errors
    /// When the request names a user and there is one sign-in for all, or names none and each user has one.
    pub fn for_user(&self, user: Option<&Name>) -> Result<Arc<SignIn>, String> {
        match (self, user) {
            (Self::Server(sign_in), None) => Ok(sign_in.clone()),
            (Self::Users(users), Some(user)) => Ok(users.for_user(user)),
            (Self::Server(_), Some(_)) => Err("it has one sign-in for all users: name no user".to_owned()),
            (Self::Users(_), None) => Err("each user signs in there: name the user, with --user".to_owned()),
        }
    }

    /// Says that somebody signed in, or out.
    pub fn announce_change(&self) {
        if let Self::Users(users) = self {
            users.announce_change();
        }
    }
}
