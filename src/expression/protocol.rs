//! What an agent and its evaluating child say to each other: frames of JSON, each after its length.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    feedback::{FeedbackOptions, Wanted},
    ignore::Selector,
    rules::RuleAnswer,
};
use crate::api::work::{config::ConditionRule, status::FeedbackValue};

/// Largest frame in bytes. etcd refuses objects over 1.5 MiB, and rules come from such an object too.
pub(super) const LARGEST_FRAME: usize = 4 << 20;

/// Bytes before a frame that say how long it is.
pub(super) const PREFIX: usize = 4;

/// Questions about one object. The child answers one after another, so that the one it is stuck on is known.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<Object, Questions> {
    pub(super) object: Object,
    pub(super) questions: Questions,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Question {
    /// Read a value.
    Value(Wanted, FeedbackOptions),
    /// Derive a condition.
    Condition(ConditionRule),
    /// Remove fields, from what earlier removals left.
    Remove(Selector),
    /// Return what the removals left.
    Object,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The child runs and has limited itself; sent once, unasked.
    Ready,
    Value(Result<Option<FeedbackValue>, String>),
    Condition(Option<RuleAnswer>),
    Removed(Result<(), String>),
    Object(Value),
}

/// Writes a value as a frame.
pub(super) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; PREFIX];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - PREFIX;
    if length > LARGEST_FRAME {
        return Err(too_large(length));
    }
    let prefix = u32::try_from(length).map_err(|_| too_large(length))?;
    frame[..PREFIX].copy_from_slice(&prefix.to_le_bytes());
    Ok(frame)
}

/// Reads the length of the frame that follows a prefix.
pub(super) fn length(prefix: [u8; PREFIX]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if length > LARGEST_FRAME {
        return Err(too_large(length));
    }
    Ok(length)
}

fn too_large(length: usize) -> io::Error {
    io::Error::other(format!(
        "{length} bytes of object and expressions are too many, {LARGEST_FRAME} are allowed"
    ))
}
