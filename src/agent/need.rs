//! Whether anything has to be sent for a manifest.

use super::{
    desired::Strategy,
    index::{Sight, View},
};

/// What a manifest needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Everything is as it was left.
    Nothing,
    /// It is to be written.
    Write,
    /// Nobody knows whether the object is there: look.
    Look,
    /// It is on record, and the watch that will show it is not up to date yet.
    Wait,
}

/// Decides for one manifest. `asked` is the digest of what the work asks for now.
pub fn need(strategy: &Strategy, view: &View, asked: &str) -> Need {
    let is_asked = view.asked.as_deref() == Some(asked);
    match (strategy, &view.sight) {
        (Strategy::ReadOnly, Sight::Unknown) => Need::Look,
        (Strategy::ReadOnly, _) => Need::Nothing,
        _ if !is_asked => Need::Write,
        (_, Sight::Gone) => Need::Write,
        (_, Sight::Unknown) if view.is_watched => Need::Look,
        (_, Sight::Unknown) => Need::Wait,
        (Strategy::CreateOnly, Sight::Present(_)) => Need::Nothing,
        (_, Sight::Present(_)) if view.is_drifted => Need::Write,
        (_, Sight::Present(_)) => Need::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spoke::seen::Seen;

    #[test]
    fn only_what_changed_is_written() {
        let present = Sight::Present(Seen {
            uid: "u".into(),
            resource_version: 1,
            owners: vec![],
            finalizers: vec![],
            is_deleting: false,
            stamp: None,
        });
        let (update, create) = (Strategy::Update, Strategy::CreateOnly);
        let there = || present.clone();
        let unseen = || Sight::Unknown;
        // strategy, asked before, sight, drifted, watched
        let table = [
            (&update, None, unseen(), false, false, Need::Write),
            (&update, Some("old"), there(), false, true, Need::Write),
            (&update, Some("new"), there(), false, true, Need::Nothing),
            (&update, Some("new"), there(), true, true, Need::Write),
            (&update, Some("new"), Sight::Gone, false, true, Need::Write),
            (&update, Some("new"), unseen(), false, false, Need::Wait),
            (&update, Some("new"), unseen(), false, true, Need::Look),
            (&create, Some("new"), there(), true, true, Need::Nothing),
            (&create, Some("new"), Sight::Gone, false, true, Need::Write),
            (
                &Strategy::ReadOnly,
                None,
                unseen(),
                false,
                false,
                Need::Look,
            ),
            (
                &Strategy::ReadOnly,
                None,
                Sight::Gone,
                false,
                true,
                Need::Nothing,
            ),
            (
                &Strategy::ReadOnly,
                None,
                there(),
                true,
                true,
                Need::Nothing,
            ),
        ];
        for (number, (strategy, asked, sight, is_drifted, is_watched, expected)) in
            table.into_iter().enumerate()
        {
            let view = View {
                sight,
                asked: asked.map(str::to_owned),
                is_drifted,
                is_watched,
            };
            assert_eq!(need(strategy, &view, "new"), expected, "row {number}");
        }
    }
}
