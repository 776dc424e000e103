//! Whether the agent has seen what it is to do.

use std::error::Error;

use kube::runtime::watcher;

use super::state::Agent;
use crate::telemetry::label::Side;

/// A server may say much; a line is enough here.
const LONGEST: usize = 1024;

/// What has been listed since the start.
#[derive(Debug, Clone, Default)]
pub struct Listings {
    /// The works on the hub.
    pub works: Listing,
    /// The records on the spoke.
    pub records: Listing,
}

/// How far a list is.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// It has been seen to its end, once.
    pub is_done: bool,
    /// Why the last try failed, if it did.
    pub error: Option<String>,
}

impl Agent {
    /// Takes note of what the watch on works (of the hub) or records (of the spoke) shows.
    pub(super) fn note<K>(&self, side: Side, event: &watcher::Result<watcher::Event<K>>) {
        let mut listings = self.listings();
        let listing = match side {
            Side::Hub => &mut listings.works,
            Side::Spoke => &mut listings.records,
        };
        match event {
            Ok(watcher::Event::Init) => self.metrics.watches.listing(side),
            Ok(watcher::Event::InitDone) => {
                listing.is_done = true;
                listing.error = None;
            }
            Ok(_) => {}
            Err(error) => {
                self.metrics.watches.broke(side);
                listing.error = Some(cause(error));
            }
        }
    }
}

/// What the server said, or what kept it from saying anything. The texts above it repeat it, twice.
fn cause(error: &watcher::Error) -> String {
    let mut text = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.message.clone(),
        other => deepest(other).to_string(),
    };
    text = text.replace(['\n', '\r'], " ");
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

fn deepest(error: &watcher::Error) -> &dyn Error {
    let mut deepest: &dyn Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}
