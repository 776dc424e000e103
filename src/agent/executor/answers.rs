//! Answers that need not be asked for again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::OnceCell, time::Instant};

use super::{changes::Changes, question::Question};

/// How long an answer is believed while the watches of RBAC would show a change. Other authorizers change unseen, so
/// even then it is not for ever.
const WATCHED: Duration = Duration::from_mins(10);

/// How long an answer is believed otherwise. A denial is never believed for longer: its work is looked at again after
/// this long, and then the account is asked about again.
pub(super) const UNWATCHED: Duration = Duration::from_mins(1);

/// What the spoke says about an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allowed,
    Denied,
}

/// Where an answer is put. Whoever has the same question meanwhile waits for it instead of asking, too.
pub(super) type Place = Arc<OnceCell<Answer>>;

/// Every answer that is still believed.
#[derive(Default)]
pub(super) struct Answers {
    entries: HashMap<Question, Entry>,
}

struct Entry {
    place: Place,
    /// When the question was first asked.
    asked: Instant,
}

impl Entry {
    fn is_believed(&self, now: Instant, is_watched: bool) -> bool {
        let limit = match self.place.get() {
            Some(Answer::Denied) => UNWATCHED,
            _ if is_watched => WATCHED,
            _ => UNWATCHED,
        };
        now.duration_since(self.asked) < limit
    }
}

impl Answers {
    /// The place of a question's answer: that of an answer which is believed or under way, else an empty one.
    ///
    /// An answer that arrives after [`forget`](Self::forget) fills a place that nobody will be given again, so what was
    /// asked before a change is never believed after it.
    pub(super) fn place(&mut self, question: &Question, now: Instant, is_watched: bool) -> Place {
        if let Some(entry) = self.entries.get(question)
            && entry.is_believed(now, is_watched)
        {
            return Arc::clone(&entry.place);
        }
        let place = Place::default();
        let entry = Entry {
            place: Arc::clone(&place),
            asked: now,
        };
        self.entries.insert(question.clone(), entry);
        place
    }

    /// Forgets what a change of rights may concern.
    pub(super) fn forget(&mut self, changes: &Changes) {
        self.entries
            .retain(|question, _| !changes.concern(question.namespace()));
    }

    /// Drops what is no longer believed.
    pub(super) fn sweep(&mut self, now: Instant, is_watched: bool) {
        self.entries
            .retain(|_, entry| entry.is_believed(now, is_watched));
    }

    /// Whether there is nothing to forget.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{account::Account, question::Target},
        *,
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn question(namespace: &str, with_delete: bool) -> Question {
        Question::Write {
            account: Account {
                namespace: "team-a".into(),
                name: "deployer".into(),
            },
            target: Target {
                group: String::new(),
                version: "v1".into(),
                resource: "configmaps".into(),
                namespace: namespace.into(),
                name: "web".into(),
            },
            with_delete,
        }
    }

    fn put(answers: &mut Answers, question: &Question, now: Instant, answer: Answer) {
        answers.place(question, now, true).set(answer).unwrap();
    }

    fn known(
        answers: &mut Answers,
        question: &Question,
        now: Instant,
        watched: bool,
    ) -> Option<Answer> {
        answers.place(question, now, watched).get().copied()
    }

    #[test]
    fn an_answer_is_believed_for_its_time() {
        let start = Instant::now();
        let shop = question("shop", true);
        let table = [
            (Answer::Allowed, true, WATCHED),
            (Answer::Allowed, false, UNWATCHED),
            (Answer::Denied, true, UNWATCHED),
            (Answer::Denied, false, UNWATCHED),
        ];
        for (answer, is_watched, limit) in table {
            let mut answers = Answers::default();
            put(&mut answers, &shop, start, answer);
            let before = known(&mut answers, &shop, start + limit - SECOND, is_watched);
            let after = known(&mut answers, &shop, start + limit, is_watched);
            assert_eq!(
                (before, after),
                (Some(answer), None),
                "{answer:?} {is_watched}"
            );
        }
    }

    #[test]
    fn a_change_forgets_what_it_may_concern() {
        let now = Instant::now();
        let (shop, bank, cluster) = (
            question("shop", true),
            question("bank", true),
            question("", true),
        );
        let table = [
            (
                Changes::of_namespace("shop"),
                [None, Some(Answer::Allowed), Some(Answer::Allowed)],
            ),
            (Changes::everywhere(), [None, None, None]),
        ];
        for (changes, expected) in table {
            let mut answers = Answers::default();
            for asked in [&shop, &bank, &cluster] {
                put(&mut answers, asked, now, Answer::Allowed);
            }
            answers.forget(&changes);
            let left = [&shop, &bank, &cluster].map(|asked| known(&mut answers, asked, now, true));
            assert_eq!(left, expected, "{changes:?}");
        }
    }

    #[test]
    fn an_answer_from_before_a_change_is_not_believed_after_it() {
        let now = Instant::now();
        let mut answers = Answers::default();
        let under_way = answers.place(&question("shop", true), now, true);
        answers.forget(&Changes::of_namespace("shop"));
        under_way.set(Answer::Allowed).unwrap();
        assert_eq!(
            known(&mut answers, &question("shop", true), now, true),
            None
        );
    }

    #[test]
    fn one_question_has_one_place_and_deletion_is_another_question() {
        let now = Instant::now();
        let mut answers = Answers::default();
        let first = answers.place(&question("shop", true), now, true);
        assert!(Arc::ptr_eq(
            &first,
            &answers.place(&question("shop", true), now, true)
        ));
        assert!(!Arc::ptr_eq(
            &first,
            &answers.place(&question("shop", false), now, true)
        ));
    }

    #[test]
    fn what_is_no_longer_believed_takes_no_room() {
        let start = Instant::now();
        let mut answers = Answers::default();
        put(
            &mut answers,
            &question("shop", true),
            start,
            Answer::Allowed,
        );
        answers.sweep(start + WATCHED - SECOND, true);
        assert!(!answers.is_empty());
        answers.sweep(start + WATCHED, true);
        assert!(answers.is_empty());
    }
}
