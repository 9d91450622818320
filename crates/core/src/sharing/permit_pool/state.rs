//! The holders of places and the queues of waiters. Pure but for waking the waiters.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{NoPermit, Permit};
use crate::sharing::{QuotaHolder, equal_share, fair_limit};

type GroupName = Arc<str>;
/// The name of a member of a group; `None` if the group has no named members.
type MemberName = Option<GroupName>;

#[derive(Debug)]
pub struct PoolState {
    all: usize,
    each: usize,
    used: usize,
    groups: HashMap<GroupName, HolderGroup>,
    /// Waiters over all groups; with none, no search for the next one is needed.
    waiting: usize,
    /// Counts up with every place that is given.
    given: u64,
}

#[derive(Debug, Default)]
struct HolderGroup {
    held: usize,
    served: u64,
    members: HashMap<MemberName, HolderMember>,
}

#[derive(Debug, Default)]
struct HolderMember {
    held: usize,
    /// When they were given one last.
    served: u64,
    waiting: VecDeque<PermitWaiter>,
    /// Places that may be taken back, the newest last.
    revocable: Vec<PermitGrant>,
}

#[derive(Debug)]
struct PermitWaiter {
    places: usize,
    tell: oneshot::Sender<Permit>,
}

/// Places that were given together.
#[derive(Clone, Debug)]
pub struct PermitGrant {
    number: u64,
    holder: QuotaHolder,
    places: usize,
    revoked: Option<CancellationToken>,
}

/// A place for somebody who waits.
pub struct ServedWaiter {
    pub place: PermitGrant,
    pub tell: oneshot::Sender<Permit>,
}

impl PermitGrant {
    pub fn revocation(&self) -> Option<&CancellationToken> {
        self.revoked.as_ref()
    }

    fn is_revoked(&self) -> bool {
        self.revoked.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

/// The places a holder and its group hold, are owed, and may hold at most.
struct HolderAllowance {
    /// Places the group holds, is owed, and may hold.
    group: usize,
    owed_to_group: usize,
    allowed: usize,
    /// Places of the group the member holds, is owed, and may hold.
    own: usize,
    owed_to_member: usize,
    most: usize,
}

impl HolderAllowance {
    fn may_grow(&self) -> bool {
        self.group < self.allowed && self.own < self.most
    }
}

impl HolderGroup {
    fn is_idle(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns how many of the group's `allowed` places a member may hold: all of them if the group has no named
    /// members.
    fn part_of(&self, name: &MemberName, allowed: usize) -> usize {
        let held = self.members.get(name).map_or(0, |member| member.held);
        match name {
            Some(_) => fair_limit(allowed, self.held - held),
            None => allowed,
        }
    }
}

impl PoolState {
    pub fn new(all: usize, each: usize) -> Self {
        Self { all, each, used: 0, groups: HashMap::new(), waiting: 0, given: 0 }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn free(&self) -> usize {
        self.all.saturating_sub(self.used)
    }

    /// Returns the number of places a group may hold now.
    fn group_allowance(&self, group: &HolderGroup) -> usize {
        fair_limit(self.all, self.used - group.held).min(self.each)
    }

    /// Returns true if `places` more are within the share of a holder. They always are for a group that holds none.
    fn is_within_part(&self, holder: &QuotaHolder, places: usize) -> bool {
        let Some(group) = self.groups.get(holder.group()).filter(|group| group.held > 0) else { return true };
        let allowed = self.group_allowance(group);
        let name = holder.member_name().cloned();
        let member = group.members.get(&name).map_or(0, |member| member.held);
        group.held + places <= allowed && (member == 0 || member + places <= group.part_of(&name, allowed))
    }

    /// A place at once. Who has less than their equal share needs to keep to no part of places that can be taken back, and where
    /// there is none is given one that is.
    pub fn try_grant(
        &mut self,
        holder: &QuotaHolder,
        revoked: Option<CancellationToken>,
    ) -> Result<PermitGrant, NoPermit> {
        let standing = self.allowance_of(holder);
        if self.free() > 0 && (self.is_within_part(holder, 1) || revoked.is_some() && standing.may_grow()) {
            return Ok(self.grant(holder, 1, revoked));
        }
        if let Some(taken_back) = self.grant_to_revoke(holder, &standing) {
            self.return_grant(&taken_back);
            if let Some(revoked) = &taken_back.revoked {
                revoked.cancel();
            }
            return Ok(self.grant(holder, 1, revoked));
        }
        Err(if self.free() > 0 || standing.group >= self.each { NoPermit::Own } else { NoPermit::All })
    }

    /// Passes a place on to another holder. If that one may have none, the place stays as it is.
    pub fn transfer_to(&mut self, place: &PermitGrant, holder: &QuotaHolder) -> Result<PermitGrant, NoPermit> {
        if place.is_revoked() {
            return Err(NoPermit::All);
        }
        self.return_grant(place);
        self.try_grant(holder, place.revoked.clone()).inspect_err(|_| self.record_grant(place))
    }

    /// Returns the places held, owed and allowed for a holder and its group.
    fn allowance_of(&self, holder: &QuotaHolder) -> HolderAllowance {
        let group = self.groups.get(holder.group());
        let held = group.map_or(0, |group| group.held);
        let groups = self.groups.len() + usize::from(group.is_none());
        let owed_to_group = equal_share_among(self.all, groups).min(self.each);
        let allowed = fair_limit(self.all, self.used - held).max(owed_to_group).min(self.each);
        let name = holder.member_name().cloned();
        let own = group.and_then(|group| group.members.get(&name)).map_or(0, |member| member.held);
        let members = group.map_or(1, |it| it.members.len() + usize::from(!it.members.contains_key(&name)));
        let owed_to_member = if name.is_some() { equal_share_among(allowed, members) } else { allowed };
        let part_of_member = if name.is_some() { fair_limit(allowed, held - own) } else { allowed };
        HolderAllowance {
            group: held,
            owed_to_group,
            allowed,
            own,
            owed_to_member,
            most: owed_to_member.max(part_of_member),
        }
    }

    /// Returns the place to revoke in favor of a holder who is owed one: the newest place of the group that holds most
    /// or, if the holder's own group has all it is owed, of the member of that group who holds most.
    fn grant_to_revoke(&self, holder: &QuotaHolder, standing: &HolderAllowance) -> Option<PermitGrant> {
        let HolderAllowance { group: held, owed_to_group, own, owed_to_member, most, .. } = *standing;
        if own >= most {
            return None;
        }
        if held < owed_to_group {
            let others = self.groups.iter().filter(|(name, other)| *name != holder.group() && other.held > held + 1);
            let newest = others.filter_map(|(_, other)| Some((other.held, newest_revocable(other, 0)?)));
            return newest.max_by_key(|(held, _)| *held).map(|(_, place)| place);
        }
        let group = self.groups.get(holder.group()).filter(|_| own < owed_to_member)?;
        newest_revocable(group, own + 1)
    }

    fn grant(&mut self, holder: &QuotaHolder, places: usize, revoked: Option<CancellationToken>) -> PermitGrant {
        self.given += 1;
        let place = PermitGrant { number: self.given, holder: holder.clone(), places, revoked };
        self.record_grant(&place);
        place
    }

    fn record_grant(&mut self, place: &PermitGrant) {
        self.used += place.places;
        let group = self.groups.entry(place.holder.group().clone()).or_default();
        let member = group.members.entry(place.holder.member_name().cloned()).or_default();
        (group.served, member.served) = (place.number, place.number);
        group.held += place.places;
        member.held += place.places;
        if place.revoked.is_some() {
            member.revocable.push(place.clone());
        }
    }

    /// Returns a place to the pool, unless it was already revoked.
    pub fn return_grant(&mut self, place: &PermitGrant) {
        if place.is_revoked() {
            return;
        }
        self.used -= place.places;
        let name = place.holder.member_name().cloned();
        if let Some(group) = self.groups.get_mut(place.holder.group()) {
            group.held -= place.places;
            if let Some(member) = group.members.get_mut(&name) {
                member.held -= place.places;
                member.revocable.retain(|other| other.number != place.number);
            }
        }
        self.forget_idle(&place.holder);
    }

    fn forget_idle(&mut self, holder: &QuotaHolder) {
        let name = holder.member_name().cloned();
        let Some(group) = self.groups.get_mut(holder.group()) else { return };
        if group.members.get(&name).is_some_and(|member| member.held == 0 && member.waiting.is_empty()) {
            group.members.remove(&name);
        }
        if group.is_idle() {
            self.groups.remove(holder.group());
        }
    }

    pub fn enqueue_waiter(&mut self, holder: &QuotaHolder, places: usize, tell: oneshot::Sender<Permit>) {
        let places = places.min(self.all);
        let group = self.groups.entry(holder.group().clone()).or_default();
        let member = group.members.entry(holder.member_name().cloned()).or_default();
        member.waiting.push_back(PermitWaiter { places, tell });
        self.waiting += 1;
    }

    /// Forgets whoever of a holder waits no more.
    pub fn drop_closed_waiters(&mut self, holder: &QuotaHolder) {
        let name = holder.member_name().cloned();
        let member = self.groups.get_mut(holder.group()).and_then(|group| group.members.get_mut(&name));
        if let Some(member) = member {
            let before = member.waiting.len();
            member.waiting.retain(|waiter| !waiter.tell.is_closed());
            self.waiting -= before - member.waiting.len();
        }
        self.forget_idle(holder);
    }

    /// Gives what is free to those who wait. Who wants more than is free is waited for: who wants less does not pass.
    pub fn serve_waiters(&mut self) -> Vec<ServedWaiter> {
        let mut served = Vec::new();
        while self.waiting > 0
            && let Some((holder, places)) = self.next_waiter()
        {
            if places > self.free() {
                break;
            }
            let name = holder.member_name().cloned();
            let member = self.groups.get_mut(holder.group()).and_then(|group| group.members.get_mut(&name));
            let Some(waiter) = member.and_then(|member| member.waiting.pop_front()) else { break };
            self.waiting -= 1;
            let place = self.grant(&holder, places, None);
            served.push(ServedWaiter { place, tell: waiter.tell });
        }
        served
    }

    /// Returns the next waiter that may have more places, and how many it wants.
    fn next_waiter(&self) -> Option<(QuotaHolder, usize)> {
        let waiting = self.groups.iter().filter_map(|(name, group)| {
            let members = group.members.iter().filter_map(|(member, it)| {
                let places = it.waiting.front()?.places;
                let holder = match member {
                    Some(member) => QuotaHolder::for_group(name.clone()).with_member(Some(member)),
                    None => QuotaHolder::for_group(name.clone()),
                };
                self.is_within_part(&holder, places).then_some(((it.held, it.served), (holder, places)))
            });
            let (_, next) = members.min_by_key(|(order, _)| *order)?;
            Some(((group.held, group.served), next))
        });
        waiting.min_by_key(|(order, _)| *order).map(|(_, next)| next)
    }
}

/// An equal share; none of somebody alone, who keeps to their part for the sake of whoever comes next.
fn equal_share_among(capacity: usize, holders: usize) -> usize {
    if holders > 1 { equal_share(capacity, holders) } else { 0 }
}

/// The newest place that may be taken back of whichever member holds most of those that hold more than so many.
fn newest_revocable(group: &HolderGroup, more_than: usize) -> Option<PermitGrant> {
    let members = group.members.values().filter(|member| member.held > more_than && !member.revocable.is_empty());
    members.max_by_key(|member| member.held)?.revocable.last().cloned()
}

#[cfg(test)]
impl PoolState {
    /// Returns true if no group is left in the state.
    pub fn is_forgotten(&self) -> bool {
        self.groups.is_empty()
    }
}
