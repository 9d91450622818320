//! Actors as futures that are polled by hand: from one `.await` of [`step`] to the next is one step, and a future that
//! is dropped in between is a crash. What an actor waits for otherwise (a lock, the end of a process) wakes it.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::chance::Chance;

/// Whether something can go on; part of something larger that then can, too.
struct Flag {
    woken: AtomicBool,
    outer: Option<Waker>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.outer {
            outer.wake_by_ref();
        }
    }
}

/// A future, polled when it can go on.
pub struct Thread<'f, T> {
    future: Pin<Box<dyn Future<Output = T> + 'f>>,
    flag: Arc<Flag>,
}

impl<'f, T> Thread<'f, T> {
    pub fn new(future: impl Future<Output = T> + 'f) -> Self {
        Self::within(future, None)
    }

    fn within(future: impl Future<Output = T> + 'f, outer: Option<Waker>) -> Self {
        Self { future: Box::pin(future), flag: Arc::new(Flag { woken: AtomicBool::new(true), outer }) }
    }

    pub fn can_go_on(&self) -> bool {
        self.flag.woken.load(Ordering::Relaxed)
    }

    pub fn go_on(&mut self) -> Option<T> {
        self.flag.woken.store(false, Ordering::Relaxed);
        let waker = Waker::from(self.flag.clone());
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }
}

/// Lets everybody else go first, or this actor be struck by something.
pub async fn step() {
    let mut first = true;
    poll_fn(|context| match std::mem::replace(&mut first, false) {
        true => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        false => Poll::Ready(()),
    })
    .await
}

/// One of several futures that go on side by side.
pub type Branch<'f, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + 'f>>;

/// Several futures at once, of which each poll takes one a step further, whichever `chance` chooses. The first error
/// drops the others, as `try_join_all` does.
pub async fn together<'f, T, E>(chance: Rc<RefCell<Chance>>, futures: Vec<Branch<'f, T, E>>) -> Result<Vec<T>, E> {
    let mut outcomes: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut futures: Vec<_> = futures.into_iter().map(Some).collect();
    let mut threads: Vec<Option<Thread<'f, Result<T, E>>>> = Vec::new();
    poll_fn(move |context| {
        // Their waker is known only now.
        let outer = context.waker();
        let begun = futures.drain(..).map(|future| Some(Thread::within(future?, Some(outer.clone()))));
        threads.extend(begun);
        let ready: Vec<usize> =
            (0..threads.len()).filter(|at| threads[*at].as_ref().is_some_and(Thread::can_go_on)).collect();
        if !ready.is_empty() {
            let at = ready[chance.borrow_mut().below(ready.len())];
            match threads[at].as_mut().and_then(Thread::go_on) {
                Some(Ok(outcome)) => (outcomes[at], threads[at]) = (Some(outcome), None),
                Some(Err(error)) => {
                    threads.clear();
                    return Poll::Ready(Err(error));
                }
                None => {}
            }
            if threads.iter().flatten().any(Thread::can_go_on) {
                outer.wake_by_ref();
            }
        }
        match threads.iter().all(Option::is_none) {
            true => Poll::Ready(Ok(outcomes.drain(..).flatten().collect())),
            false => Poll::Pending,
        }
    })
    .await
}
