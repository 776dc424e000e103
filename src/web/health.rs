//! Whether the process lives, and whether it is ready.
//!
//! *Lives* is what a restart would mend, and nothing else: a pass or a watch of our own that is stuck. A hub that does
//! not answer is none of it; a restart would only lose what is known. *Ready* is whether the agent has seen what it is
//! to do. A replica that waits for another one to end is ready: it does what it is there for.

use std::time::Duration;

use crate::agent::{listings::Listings, state::Key};

/// A watch is begun anew every five minutes, more often when it breaks. Nobody has for three times as long: whoever
/// follows it is stuck.
const UNFOLLOWED: Duration = Duration::from_mins(15);

/// What is known of the process.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Whether this replica leads.
    pub is_leading: bool,
    /// What has been listed; absent before the agent has started.
    pub listings: Option<Listings>,
    /// Passes that do not get anywhere, and for how long.
    pub stuck: Vec<(Key, Duration)>,
    /// How long ago each side was last listed or watched; absent before the first time.
    pub since_followed: [(&'static str, Option<Duration>); 2],
}

/// Names what a restart would mend; nothing if the process lives.
pub fn ailments(facts: &Facts) -> Vec<String> {
    let stuck = facts.stuck.iter().map(|(key, since)| {
        let (Key::Work(name) | Key::Record(name)) = key;
        let minutes = since.as_secs() / 60;
        format!("the pass over {name} has not come a step further for {minutes} minutes")
    });
    // A replica that does not lead follows nothing.
    let followed = facts.since_followed.iter().filter(|_| facts.is_leading);
    let unfollowed = followed.filter_map(|(side, since)| {
        let since = since.filter(|since| *since >= UNFOLLOWED)?;
        let minutes = since.as_secs() / 60;
        Some(format!(
            "the {side} has not been watched for {minutes} minutes"
        ))
    });
    stuck.chain(unfollowed).collect()
}

/// Names what the process still lacks; nothing if it is ready.
pub fn lacks(facts: &Facts) -> Vec<String> {
    if !facts.is_leading {
        return Vec::new();
    }
    let Some(listings) = &facts.listings else {
        return vec!["the agent has not started".to_owned()];
    };
    let lists = [
        ("works on the hub", &listings.works),
        ("records on the spoke", &listings.records),
    ];
    let missing = lists.into_iter().filter(|(_, listing)| !listing.is_done);
    missing
        .map(|(what, listing)| match &listing.error {
            None => format!("the {what} have not been listed yet"),
            Some(error) => format!("the {what} have not been listed yet: {error}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::listings::Listing;

    fn facts() -> Facts {
        let done = Listing {
            is_done: true,
            error: None,
        };
        Facts {
            is_leading: true,
            listings: Some(Listings {
                works: done.clone(),
                records: done,
            }),
            stuck: Vec::new(),
            since_followed: [
                ("hub", Some(Duration::from_mins(4))),
                ("spoke", Some(Duration::from_mins(4))),
            ],
        }
    }

    #[test]
    fn only_what_a_restart_mends_is_an_ailment() {
        assert_eq!(ailments(&facts()), [""; 0]);

        let mut young = facts();
        young.listings = None;
        young.since_followed = [("hub", None), ("spoke", None)];
        assert_eq!(ailments(&young), [""; 0], "it has just begun");

        let mut stuck = facts();
        stuck.stuck = vec![(Key::Work("web".into()), Duration::from_mins(21))];
        stuck.since_followed[1].1 = Some(Duration::from_mins(16));
        assert_eq!(
            ailments(&stuck),
            [
                "the pass over web has not come a step further for 21 minutes",
                "the spoke has not been watched for 16 minutes",
            ]
        );

        stuck.is_leading = false;
        stuck.stuck.clear();
        assert_eq!(ailments(&stuck), [""; 0], "a follower watches nothing");
    }

    #[test]
    fn ready_is_who_has_seen_what_to_do_and_who_waits_for_another() {
        assert_eq!(lacks(&facts()), [""; 0]);

        let mut blind = facts();
        blind.listings = Some(Listings {
            works: Listing {
                is_done: false,
                error: Some("forbidden".into()),
            },
            records: Listing::default(),
        });
        assert_eq!(
            lacks(&blind),
            [
                "the works on the hub have not been listed yet: forbidden",
                "the records on the spoke have not been listed yet",
            ]
        );

        blind.listings = None;
        assert_eq!(lacks(&blind), ["the agent has not started"]);
        blind.is_leading = false;
        assert_eq!(lacks(&blind), [""; 0]);
    }
}
