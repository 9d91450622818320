//! Orders as they are kept beside the data keys, and in the log. Whatever else is written where they are kept is passed over.

use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent, data_keys::order_key},
    copies::COPY_OF,
    envelope::{Envelope, Origin},
    forget_order::{FORGET, ForgetOrder},
    ids::Name,
    principal::Principal,
    signing::{EntrySigner, SignedContent},
    subjects::{DATA_KEYS_BUCKET, Service, USER_FORGET, USER_FORGOTTEN},
};
use kairo_proto::{
    v1::{UserForget, UserForgotten},
    words::ForgettingStep,
};

/// An order, and the revision under which it is written next.
#[derive(Clone, Debug)]
pub struct OrderEntry {
    pub order: ForgetOrder,
    pub revision: u64,
}

/// The store of orders. Cloning it is cheap.
#[derive(Clone)]
pub struct OrderStore {
    bus: Bus,
    signatures: EntrySigner,
}

impl OrderStore {
    pub fn new(bus: &Bus, signatures: &EntrySigner) -> Self {
        Self { bus: bus.clone(), signatures: signatures.clone() }
    }

    /// The order to forget a user, if there is one that is not carried out.
    pub async fn open_order(&self, user: &Name) -> Result<Option<OrderEntry>, BusError> {
        let kept = self.last_order(user).await?;
        Ok(kept.filter(|kept| kept.order.step() != ForgettingStep::Done))
    }

    /// The last order to forget a user, carried out or not.
    ///
    /// # Errors
    /// Also where a newer gateway has written it: a user is not to be told that nobody asked for it, nor asked for again in vain.
    pub async fn last_order(&self, user: &Name) -> Result<Option<OrderEntry>, BusError> {
        let (revision, order) = self.read_order(user).await?;
        Ok(order.map(|order| OrderEntry { order, revision }))
    }

    /// Reads the last order to forget a user and the revision of the newest entry, which may not be an order.
    async fn read_order(&self, user: &Name) -> Result<(u64, Option<ForgetOrder>), BusError> {
        let key = order_key(user);
        let (revision, entry) = self.bus.read_value_with_revision(DATA_KEYS_BUCKET, &key).await?;
        if let Some(entry) = &entry
            && let SignedContent::Written(order) =
                self.signatures.decode_entry::<ForgetOrder>(DATA_KEYS_BUCKET, &key, &entry.value)
        {
            return Ok((revision, Some(order)));
        }
        match revision {
            0 => Ok((0, None)),
            _ => self.read_overwritten(user, &key).await,
        }
    }

    /// The newest order beneath what others have written over it, which is removed if it is damaged.
    async fn read_overwritten(&self, user: &Name, key: &str) -> Result<(u64, Option<ForgetOrder>), BusError> {
        let mut newest = 0;
        let mut found = None;
        for raw in self.bus.read_revisions(DATA_KEYS_BUCKET, key).await? {
            let content = match raw.header(COPY_OF) {
                Some(_) => SignedContent::Damaged,
                None => self.signatures.decode_entry::<ForgetOrder>(DATA_KEYS_BUCKET, key, &raw.payload),
            };
            match content {
                SignedContent::Written(order) => found = Some(order),
                SignedContent::Unknown => {
                    return Err(BusError::Refused(format!("a newer gateway has written the order to forget {user}")));
                }
                SignedContent::Unsigned => {
                    tracing::warn!(%user, "an order to forget a user is not signed with signing.key, and is not carried out");
                }
                SignedContent::Damaged => {
                    tracing::warn!(%user, "removing what no gateway has written in the place of an order to forget a user");
                    self.bus.erase_revision(DATA_KEYS_BUCKET, raw.sequence).await?;
                    continue;
                }
            }
            newest = raw.sequence;
        }
        Ok((newest, found))
    }

    /// Gives the order to forget a user, unless there is one.
    pub async fn give_order(&self, user: &Name, by: Principal) -> Result<ForgetOrder, BusError> {
        let (revision, last) = self.read_order(user).await?;
        if let Some(last) = last.filter(|last| last.step() != ForgettingStep::Done) {
            return Ok(last);
        }
        let order = ForgetOrder { by_whom: Some(by), ..ForgetOrder::new(self.bus.new_id(), user.clone()) };
        let value = self.sign_order(&order)?;
        match self.bus.update_value(DATA_KEYS_BUCKET, &order_key(user), value.into(), revision).await {
            Ok(_) => Ok(order),
            // Another one was faster.
            Err(BusError::Conflict { .. }) => Ok(self.last_order(user).await?.map_or(order, |last| last.order)),
            Err(error) => Err(error),
        }
    }

    /// Keeps how far an order is.
    pub async fn save_order(&self, kept: &mut OrderEntry) -> Result<(), BusError> {
        let key = order_key(&kept.order.user);
        let value = self.sign_order(&kept.order)?;
        // The bucket takes few entries of a key, and would refuse this one.
        self.bus.erase_older_revisions(&key, kept.revision).await?;
        kept.revision = self.bus.update_value(DATA_KEYS_BUCKET, &key, value.into(), kept.revision).await?;
        Ok(())
    }

    /// Writes an order into the log, unless it stands there: a restore may have taken it from there.
    ///
    /// # Errors
    /// If the log does not contain the signed order afterwards.
    pub async fn write_to_log(&self, order: &ForgetOrder) -> Result<(), BusError> {
        let ForgetOrder { order_id, user, by_whom, .. } = order;
        if self.is_in_log(order).await? {
            return Ok(());
        }
        let origin = if by_whom.is_some() { Origin::User } else { Origin::System };
        let envelope = Envelope::from_outside(*order_id, Service::Gateway, origin, self.bus.now());
        let envelope = Envelope { entered_by: by_whom.clone(), ..envelope };
        let signature = self.signatures.sign(FORGET, &order.to_signed_text());
        let body = UserForget { order_id: order_id.to_string(), user: user.to_string(), signature };
        self.bus.publish(&OutgoingEvent::new(&USER_FORGET, user, envelope, body)).await?;
        match self.is_in_log(order).await? {
            true => Ok(()),
            false => Err(BusError::Unavailable {
                doing: "giving an order",
                source: "it does not stand in the log yet".into(),
            }),
        }
    }

    async fn is_in_log(&self, order: &ForgetOrder) -> Result<bool, BusError> {
        let mut found = false;
        let most = self.bus.limits.max_body_bytes;
        let look = |raw: kairo_core::record::RawMessage| {
            let record = raw.without_carried_mark().read(most).ok();
            let body = record.and_then(|record| UserForget::try_from(record.body).ok());
            found |= body.is_some_and(|body| {
                body.order_id == order.order_id.to_string()
                    && self.signatures.is_signed(FORGET, &order.to_signed_text(), &body.signature)
            });
        };
        self.bus.read_all_at_leader(&USER_FORGET.of_owner(&order.user), 0, look).await?;
        Ok(found)
    }

    fn sign_order(&self, order: &ForgetOrder) -> Result<Vec<u8>, BusError> {
        let value = self.signatures.encode_entry(DATA_KEYS_BUCKET, &order_key(&order.user), order);
        value.map_err(|error| BusError::Refused(format!("an order cannot be kept: {error}")))
    }
}

/// The event of the last order to forget a user that was carried out, if there was one.
pub async fn read_completion(bus: &Bus, user: &Name) -> Result<Option<UserForgotten>, BusError> {
    let last = bus.last_message(&USER_FORGOTTEN.of_owner(user)).await?;
    let record = last.and_then(|raw| raw.read(bus.limits.max_body_bytes).ok());
    Ok(record.and_then(|record| UserForgotten::try_from(record.body).ok()))
}
