//! The holders by which places, requests and messages are counted.

use std::sync::Arc;

/// Somebody who has a share of their own and, where they stand for many, one of those.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaHolder {
    group: Arc<str>,
    /// `None` if nobody within the group is told apart.
    member: Option<Arc<str>>,
}

impl QuotaHolder {
    /// Somebody who stands for nobody else.
    pub fn for_group(group: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), member: None }
    }

    /// One of the many that a group stands for. Those that are not named are one together.
    #[must_use]
    pub fn with_member(self, name: Option<&str>) -> Self {
        Self { member: Some(Arc::from(name.unwrap_or_default())), ..self }
    }

    /// A user, by whatever way they come.
    pub fn for_user(name: &str) -> Self {
        Self::for_group(format!("user {name}"))
    }

    /// A user, on whose behalf an agent does something, or the agent where it does so on nobody's.
    pub fn on_behalf(user: Option<&str>, agent: &str) -> Self {
        match user.filter(|user| !user.is_empty()) {
            Some(user) => Self::for_user(user),
            None => Self::for_group(format!("agent {agent}")),
        }
    }

    pub(super) fn group(&self) -> &Arc<str> {
        &self.group
    }

    pub(super) fn member_name(&self) -> Option<&Arc<str>> {
        self.member.as_ref()
    }
}
