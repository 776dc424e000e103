//! Whether anything has to be sent for a manifest.

use super::{
    desired::Strategy,
    index::{Sight, View, Watching},
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
    let is_asked = view
        .heard
        .as_ref()
        .is_some_and(|heard| heard.asked == asked);
    match (strategy, &view.sight) {
        (Strategy::ReadOnly, Sight::Unknown) => Need::Look,
        (Strategy::ReadOnly, _) => Need::Nothing,
        _ if !is_asked => Need::Write,
        (_, Sight::Gone) => Need::Write,
        (_, Sight::Unknown) if view.watching == Watching::Begun => Need::Wait,
        (_, Sight::Unknown) => Need::Look,
        (Strategy::CreateOnly, Sight::Present(_)) => Need::Nothing,
        (_, Sight::Present(_)) if view.is_drifted => Need::Write,
        (_, Sight::Present(_)) => Need::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use crate::{agent::records::Heard, spoke::seen::Seen};

    #[test]
    fn only_what_changed_is_written() {
        let there = || Sight::Present(Seen::of(&ObjectMeta::default()));
        let unseen = || Sight::Unknown;
        let (update, create, read) = (Strategy::Update, Strategy::CreateOnly, Strategy::ReadOnly);
        let (begun, done, never) = (Watching::Begun, Watching::UpToDate, Watching::Impossible);
        // strategy, asked before, sight, drifted, watching
        let table = [
            (&update, None, unseen(), false, begun, Need::Write),
            (&update, Some("old"), there(), false, done, Need::Write),
            (&update, Some("new"), there(), false, done, Need::Nothing),
            (&update, Some("new"), there(), true, done, Need::Write),
            (&update, Some("new"), Sight::Gone, false, done, Need::Write),
            (&update, Some("new"), unseen(), false, begun, Need::Wait),
            (&update, Some("new"), unseen(), false, done, Need::Look),
            (&update, Some("new"), unseen(), false, never, Need::Look),
            (&create, Some("new"), there(), true, done, Need::Nothing),
            (&create, Some("new"), Sight::Gone, false, done, Need::Write),
            (&read, None, unseen(), false, begun, Need::Look),
            (&read, None, Sight::Gone, false, done, Need::Nothing),
            (&read, None, there(), true, done, Need::Nothing),
        ];
        for (number, (strategy, asked, sight, is_drifted, watching, expected)) in
            table.into_iter().enumerate()
        {
            let view = View {
                sight,
                heard: asked.map(|asked| Heard {
                    asked: asked.to_owned(),
                    manager: "".into(),
                    note: String::new(),
                }),
                is_drifted,
                watching,
            };
            assert_eq!(need(strategy, &view, "new"), expected, "row {number}");
        }
    }
}
