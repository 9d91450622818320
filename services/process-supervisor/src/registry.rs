//! The processes that run here.

use std::{
    collections::{BTreeMap, btree_map},
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kairo_core::ids::Name;
use uuid::Uuid;

use crate::process::Process;

/// All of them, by their actions. There are never more than may run at once.
#[derive(Default)]
pub struct Registry {
    processes: Mutex<BTreeMap<Uuid, Arc<Process>>>,
}

/// A process in the registry; dropping it takes it out and says that it is over.
pub struct Registered {
    registry: Arc<Registry>,
    process: Arc<Process>,
}

impl Registry {
    /// `None` when its action has a process here already.
    pub fn register(self: &Arc<Self>, process: Process) -> Option<Registered> {
        let process = Arc::new(process);
        match self.lock().entry(process.action) {
            btree_map::Entry::Occupied(_) => return None,
            btree_map::Entry::Vacant(vacant) => vacant.insert(process.clone()),
        };
        Some(Registered { registry: self.clone(), process })
    }

    /// The process of an action of this agent.
    pub fn find(&self, agent: &Name, action: Uuid) -> Option<Arc<Process>> {
        self.lock().get(&action).filter(|process| process.agent == *agent).cloned()
    }

    /// All processes of an agent.
    pub fn of(&self, agent: &Name) -> Vec<Arc<Process>> {
        self.lock().values().filter(|process| process.agent == *agent).cloned().collect()
    }

    /// Returns the number of processes.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Registered {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.process.action);
        self.process.is_over();
    }
}
