//! How an exchange is ended from outside.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::observation::Cancel;

/// The one way to end an exchange from outside. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    pub(super) by: Arc<OnceLock<Cancel>>,
    pub(super) asked: CancellationToken,
    pub(super) again: CancellationToken,
}

impl Cancellation {
    /// Asks for the end. The first caller is named in the verdict; from the second call on, the
    /// engine is no longer given time to end by itself.
    pub fn cancel(&self, by: Cancel) {
        if self.by.set(by).is_err() {
            self.again.cancel();
        }
        self.asked.cancel();
    }
}
