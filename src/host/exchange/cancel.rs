//! How an exchange is ended from outside: one state, which says who asked and how often.

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::observation::{CancelledBy, Stop};

/// The one way to end an exchange from outside. Clones share one state.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Sender<Asked>);

/// Who asked for the end first, and how often anybody did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    by: Option<CancelledBy>,
    times: u32,
}

impl Default for Cancel {
    fn default() -> Self {
        Self(watch::Sender::new(Asked::default()))
    }
}

impl Cancel {
    /// Asks for the end. The first caller is named in the verdict; from the second call on, the
    /// program is no longer given time to end by itself.
    pub fn ask(&self, by: CancelledBy) {
        self.0.send_modify(|asked| {
            asked.by.get_or_insert(by);
            asked.times = asked.times.saturating_add(1);
        });
    }

    /// Until the end has been asked for so often, and who asked first.
    pub(super) async fn asked(&self, times: u32) -> CancelledBy {
        let mut seen = self.0.subscribe();
        if let Ok(asked) = seen.wait_for(|asked| asked.times >= times).await
            && let Some(by) = &asked.by
        {
            return by.clone();
        }
        // The sender is ours, and whoever asks names somebody: this is never reached.
        std::future::pending().await
    }
}

/// Until somebody asks for the end, or the deadline passes.
pub(super) async fn interrupted(deadline: Instant, cancel: &Cancel) -> Stop {
    tokio::select! {
        biased;
        by = cancel.asked(1) => Stop::Cancelled(by),
        () = sleep_until(deadline) => Stop::Deadline,
    }
}
