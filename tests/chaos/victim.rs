//! What can be killed, frozen and started again.

use std::future::Future;

use kairo_local::{LocalError, Postgres};

use super::{
    Outcome,
    builds::Build,
    machine::{self, Replica},
    plan::Blow,
};

pub trait Victim: Send + Sync + 'static {
    /// What it is counted as.
    fn kind(&self) -> &'static str;
    /// What the journal calls it.
    fn name(&self) -> String;
    /// Returns when it is gone.
    fn kill9(&self) -> impl Future<Output = Result<(), LocalError>> + Send;
    fn freeze(&self) -> impl Future<Output = ()> + Send;
    fn thaw(&self);
    /// Starts it anew, after asking it to drain and end if it runs; returns when it is ready.
    fn restart(&mut self) -> impl Future<Output = Result<(), LocalError>> + Send;
    /// What it is started as from now on, if there are several builds of it.
    fn becomes(&mut self, _build: Build) {}
    /// What befalls only some; returns when it is put right.
    fn suffer(&mut self, _blow: Blow) -> impl Future<Output = Outcome<()>> + Send {
        async { Ok(()) }
    }
    /// Waits until it ends, and says how.
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
        self.process().exited().await.to_string()
    }
}
