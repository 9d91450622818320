//! The processes that run here.

use std::{
    collections::{BTreeMap, btree_map},
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kairo_core::ids::Name;
use uuid::Uuid;

use crate::running_process::RunningProcess;

/// All of them, by their actions. There are never more than may run at once.
#[derive(Default)]
pub struct Registry {
    processes: Mutex<BTreeMap<Uuid, Arc<RunningProcess>>>,
}

/// A process in the registry; dropping it takes it out and says that it is over.
pub struct RegistryEntry {
    registry: Arc<Registry>,
    process: Arc<RunningProcess>,
}

impl Registry {
    /// `None` when its action has a process here already.
    pub fn register(self: &Arc<Self>, process: RunningProcess) -> Option<RegistryEntry> {
        let process = Arc::new(process);
        match self.lock().entry(process.action) {
            btree_map::Entry::Occupied(_) => return None,
            btree_map::Entry::Vacant(vacant) => vacant.insert(process.clone()),
        };
        Some(RegistryEntry { registry: self.clone(), process })
    }

    /// The process of an action of this agent.
    pub fn find(&self, agent: &Name, action: Uuid) -> Option<Arc<RunningProcess>> {
        self.lock().get(&action).filter(|process| process.agent == *agent).cloned()
    }

    /// All processes of an agent.
    pub fn processes_of(&self, agent: &Name) -> Vec<Arc<RunningProcess>> {
        self.lock().values().filter(|process| process.agent == *agent).cloned().collect()
    }

    /// Returns the number of processes.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<RunningProcess>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for RegistryEntry {
    type Target = RunningProcess;

    fn deref(&self) -> &RunningProcess {
        &self.process
    }
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.process.action);
        self.process.mark_over();
    }
}
