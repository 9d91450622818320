//! The parts of Kairo that can be killed, frozen and started again.

use std::future::Future;

use kairo_local::{LocalError, Postgres};

use super::{
    Outcome,
    builds::Build,
    machine::{self, Replica},
    plan::Blow,
};

pub trait Victim: Send + Sync + 'static {
    /// Returns the name under which it is counted.
    fn kind(&self) -> &'static str;
    /// Returns its name in the journal.
    fn name(&self) -> String;
    /// Returns when it is gone.
    fn kill9(&self) -> impl Future<Output = Result<(), LocalError>> + Send;
    fn freeze(&self) -> impl Future<Output = ()> + Send;
    fn thaw(&self);
    /// Starts it anew, after asking it to drain and end if it runs; returns when it is ready.
    fn restart(&mut self) -> impl Future<Output = Result<(), LocalError>> + Send;
    /// Sets the build that it is started as from now on, if there are several.
    fn becomes(&mut self, _build: Build) {}
    /// Suffers a blow that befalls only some victims; returns when it is mended.
    fn suffer(&mut self, _blow: Blow) -> impl Future<Output = Outcome<()>> + Send {
        async { Ok(()) }
    }
    /// Waits until it ends, and returns how it ended.
    fn ended(&self) -> impl Future<Output = String> + Send;
}

impl Victim for Replica {
    fn kind(&self) -> &'static str {
        self.service.binary()
    }

    fn name(&self) -> String {
        machine::name(self.service, self.index)
    }

    async fn kill9(&self) -> Result<(), LocalError> {
        self.stack.kill9(self.service, 0).await
    }

    async fn freeze(&self) {
        self.stack.replicas(self.service).iter().for_each(|replica| replica.process().freeze());
    }

    fn thaw(&self) {
        self.stack.replicas(self.service).iter().for_each(|replica| replica.process().thaw());
    }

    async fn restart(&mut self) -> Result<(), LocalError> {
        self.stack.restart(self.service, 0).await
    }

    fn becomes(&mut self, build: Build) {
        self.stack.use_build(self.builds.folder(build));
    }

    async fn ended(&self) -> String {
        let (_, _, exit) = self.stack.any_exit().await;
        exit.to_string()
    }
}

impl Victim for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn name(&self) -> String {
        self.kind().to_owned()
    }

    async fn kill9(&self) -> Result<(), LocalError> {
        Postgres::kill9(self).await.map(drop)
    }

    /// The process that accepts connections; those that there are go on.
    async fn freeze(&self) {
        self.process().freeze();
    }

    fn thaw(&self) {
        self.process().thaw();
    }

    async fn restart(&mut self) -> Result<(), LocalError> {
        Postgres::restart(self).await
    }

    async fn ended(&self) -> String {
        self.process().wait_for_exit().await.to_string()
    }
}
