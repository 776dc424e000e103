//! Whether files have changed.
//!
//! What counts is what is in them, looked at every second. Secrets are mounted through links that are swapped, editors
//! replace files, and some file systems report nothing: a look misses none of it, and costs four small reads.

use std::{fs, path::PathBuf, time::Duration};

use sha2::{Digest as _, Sha256};
use tokio::{task::spawn_blocking, time::sleep};

const INTERVAL: Duration = Duration::from_secs(1);

/// What files contained when they were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contents {
    files: Vec<PathBuf>,
    /// Of each file that could be read.
    digests: Vec<Option<[u8; 32]>>,
}

impl Contents {
    /// Looks at files.
    pub(super) async fn of(files: Vec<PathBuf>) -> Self {
        // A file system that hangs must not take a thread from those who renew the lease.
        let looked = spawn_blocking(move || {
            let digests = files.iter().map(digest).collect();
            Self { files, digests }
        });
        looked.await.expect("reading files does not panic")
    }

    /// Waits until the files differ from this, and have been the same for two looks: a certificate and its key are two
    /// files, and the one without the other is of no use.
    pub(super) async fn changed(&self) -> Self {
        let mut last = self.clone();
        loop {
            sleep(INTERVAL).await;
            let now = Self::of(self.files.clone()).await;
            if now != *self && now == last {
                return now;
            }
            last = now;
        }
    }
}

fn digest(file: &PathBuf) -> Option<[u8; 32]> {
    let content = fs::read(file).ok()?;
    Some(Sha256::digest(content).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_other_contents_are_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (directory.path().join("one"), directory.path().join("two"));
        fs::write(&one, "1").unwrap();
        let before = Contents::of(vec![one.clone(), two.clone()]).await;
        fs::write(&one, "1").unwrap();
        let minute = Duration::from_mins(1);
        assert!(
            tokio::time::timeout(minute, before.changed())
                .await
                .is_err()
        );
        // A file that appears, or vanishes, is a change too.
        fs::write(&two, "2").unwrap();
        let after = tokio::time::timeout(minute, before.changed())
            .await
            .unwrap();
        assert_ne!(after, before);
        fs::remove_file(&two).unwrap();
        assert_eq!(after.changed().await, before);
    }
}
