//! The agent is killed at each of its writes in turn, and started again: nothing is orphaned, lost, or written twice.

use std::sync::Arc;

use crate::{
    agent_content::{Found, Objects, manifests},
    agent_wired::Wired,
    harness::cases,
    servers::{
        Lab,
        wire::{Moment, Sent},
    },
};

cases!(
    plain: ;
    kubernetes:
        killed_before_each_write,
        killed_after_each_write_before_the_answer,
        killed_around_each_write_of_a_definition,
        a_work_that_changes_while_its_agent_is_dead,
);

async fn killed_before_each_write(lab: Arc<Lab>) {
    let writes = Crashes::start(&lab)
        .await
        .kill_in_turn(Moment::Before, false)
        .await;
    assert!(
        writes >= 9,
        "only {writes} kills in one life: this test has lost its subject"
    );
}

async fn killed_after_each_write_before_the_answer(lab: Arc<Lab>) {
    let writes = Crashes::start(&lab)
        .await
        .kill_in_turn(Moment::After, false)
        .await;
    assert!(
        writes >= 9,
        "only {writes} kills in one life: this test has lost its subject"
    );
}

async fn killed_around_each_write_of_a_definition(lab: Arc<Lab>) {
    let mut crashes = Crashes::start(&lab).await;
    for moment in [Moment::Before, Moment::After] {
        crashes.kill_in_turn(moment, true).await;
    }
}

/// What the work asked for when the agent died is asked for no more when it comes back: only the intent knows of it.
async fn a_work_that_changes_while_its_agent_is_dead(lab: Arc<Lab>) {
    let mut crashes = Crashes::start(&lab).await;
    for moment in [Moment::Before, Moment::After] {
        for number in 1.. {
            let kills = crashes.interrupted_life(number, moment).await;
            if kills == 0 {
                break;
            }
        }
    }
}

/// An agent that is killed, and the works it is killed at.
struct Crashes {
    wired: Wired,
    /// How many works there have been.
    lives: usize,
    /// When the agent is killed, for whoever reads a failure.
    plan: String,
}

impl Crashes {
    async fn start(lab: &Lab) -> Self {
        Self {
            wired: Wired::start(lab).await,
            lives: 0,
            plan: String::new(),
        }
    }

    /// Leads works through their lives, with a kill at the first write of each phase, then the second, until there is
    /// no phase with so many writes. Returns the number of lives with a kill.
    async fn kill_in_turn(&mut self, moment: Moment, defines: bool) -> usize {
        for number in 1.. {
            let kills = self.life(number, moment, defines).await;
            if kills == 0 {
                return number - 1;
            }
        }
        unreachable!("a life has an end")
    }

    /// Creates, edits and deletes one work. Returns in how many phases the agent was killed.
    async fn life(&mut self, number: usize, moment: Moment, defines: bool) -> usize {
        self.lives += 1;
        self.plan = format!("killed {moment:?} write {number}");
        let work = format!("life{}", self.lives);
        let mut kills = 0;

        let first = self
            .wired
            .objects(&work, &["kept", "edited", "dropped"], "1", defines);
        self.wired.wire.arm(number, moment);
        let begin = self.wired.wire.position();
        self.wired
            .pair
            .put_manifests(&work, &manifests(&first))
            .await;
        let created = self
            .settle(&work, &first, &Objects::new(), &mut kills)
            .await;
        self.written_once("create", begin, &created);

        let mut second = self.wired.objects(&work, &["kept", "added"], "1", defines);
        second.extend(self.wired.objects(&work, &["edited"], "2", defines));
        self.wired.wire.arm(number, moment);
        let begin = self.wired.wire.position();
        self.wired
            .pair
            .put_manifests(&work, &manifests(&second))
            .await;
        let edited = self.settle(&work, &second, &first, &mut kills).await;
        self.written_once("edit", begin, &edited);
        for (path, (uid, version)) in &edited {
            let Some((uid_before, version_before)) = created.get(path) else {
                continue;
            };
            assert_eq!(uid, uid_before, "{path} is another object");
            if first[path] == second[path] {
                assert_eq!(
                    version, version_before,
                    "{path} was written although nobody asked"
                );
            }
        }

        self.wired.wire.arm(number, moment);
        let begin = self.wired.wire.position();
        self.wired.pair.begin_delete(&work).await;
        self.settle(&work, &Objects::new(), &second, &mut kills)
            .await;
        if kills == 0 {
            self.deleted_once(begin, &second);
        }
        kills
    }

    /// Creates, edits and deletes one work, each edit while the agent is dead. Returns how often it was killed.
    async fn interrupted_life(&mut self, number: usize, moment: Moment) -> usize {
        self.lives += 1;
        self.plan = format!("killed {moment:?} write {number}");
        let work = format!("interrupted{}", self.lives);
        let mut kills = 0;
        let first = self.wired.objects(&work, &["kept", "dropped"], "1", false);
        let second = self.wired.objects(&work, &["kept", "added"], "1", false);

        self.wired.wire.arm(number, moment);
        self.wired
            .pair
            .put_manifests(&work, &manifests(&first))
            .await;
        let is_dead = self.until_killed(&work, &first, &Objects::new()).await;
        self.wired
            .pair
            .put_manifests(&work, &manifests(&second))
            .await;
        self.revive(is_dead, &mut kills);
        self.wired.end(&self.plan, &work, &second, &first).await;

        self.wired.wire.arm(number, moment);
        self.wired
            .pair
            .put_manifests(&work, &manifests(&first))
            .await;
        let is_dead = self.until_killed(&work, &first, &second).await;
        self.wired.pair.begin_delete(&work).await;
        self.revive(is_dead, &mut kills);
        let both = first.into_iter().chain(second).collect();
        self.wired
            .end(&self.plan, &work, &Objects::new(), &both)
            .await;
        kills
    }

    /// Waits until the agent is killed and starts it again, or until the phase has ended without. Then the spoke and
    /// the hub are as they should be, or the case fails.
    async fn settle(
        &mut self,
        work: &str,
        wanted: &Objects,
        before: &Objects,
        kills: &mut usize,
    ) -> Found {
        let is_dead = self.until_killed(work, wanted, before).await;
        self.revive(is_dead, kills);
        self.wired.end(&self.plan, work, wanted, before).await
    }

    /// Returns whether the agent was killed before the phase ended.
    async fn until_killed(&self, work: &str, wanted: &Objects, before: &Objects) -> bool {
        tokio::select! {
            () = self.wired.wire.struck() => {}
            _ = self.wired.end(&self.plan, work, wanted, before) => {}
        }
        self.wired.wire.disarm().await
    }

    fn revive(&mut self, is_dead: bool, kills: &mut usize) {
        if is_dead {
            *kills += 1;
            self.wired.restart();
        }
    }

    /// Every write of an object that the spoke took in this phase came to the one version that is there now: whatever
    /// was sent twice changed nothing the second time.
    fn written_once(&self, phase: &str, begin: usize, found: &Found) {
        let log = self.wired.wire.since(begin);
        for sent in log.iter().filter(|sent| sent.is_write() && sent.is_taken()) {
            let Some((_, version)) = found.get(sent.object()) else {
                continue;
            };
            assert_eq!(
                sent.version.as_ref(),
                Some(version),
                "{phase}, {}: {} was changed more than once:\n{}",
                self.plan,
                sent.object(),
                transcript(&log)
            );
        }
    }

    /// Without a kill, each object is deleted by one request, none asks in vain, and what a watch shows is not read.
    fn deleted_once(&self, begin: usize, objects: &Objects) {
        let log = self.wired.wire.since(begin);
        let deletes = |sent: &&Sent| {
            sent.method == http::Method::DELETE && objects.contains_key(sent.object())
        };
        let found: Vec<&Sent> = log.iter().filter(deletes).collect();
        let is_read = |sent: &Sent| {
            sent.method == http::Method::GET && sent.object().contains("/configmaps/")
        };
        assert!(
            found.len() == objects.len()
                && found.iter().all(|sent| sent.is_taken())
                && !log.iter().any(is_read),
            "not one each:\n{}",
            transcript(&log)
        );
    }
}

fn transcript(log: &[Sent]) -> String {
    let lines = log.iter().map(|sent| {
        format!(
            "{:?} {} {} {:?} {:?}\n",
            sent.side, sent.method, sent.path, sent.code, sent.version
        )
    });
    lines.collect()
}
