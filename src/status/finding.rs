//! What the agent hands to this room.

use crate::api::work::status::{FeedbackValue, ResourceMeta};

/// What the agent found out about one manifest in this pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which manifest.
    pub meta: ResourceMeta,
    /// How the write went; `None` keeps the stored answer, for a manifest that was not written in this pass.
    pub applied: Option<Applied>,
    /// Whether the object is there; `None` keeps the stored answer, for an object that was not looked at.
    pub available: Option<Availability>,
    /// What the feedback rules read from the object.
    pub feedback: Feedback,
    /// What the condition rules made of the object.
    pub rules: Rules,
}

/// How the write of a manifest went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// The object is as the manifest wants it, or is frozen because it is complete.
    Complete,
    /// The same, with something to say about it.
    CompleteBut {
        /// What; it follows the usual text.
        note: String,
    },
    /// The object could not be written.
    Failed {
        /// Why, in the words of the server or the agent.
        error: String,
    },
    /// The fields to leave alone could not be worked out, so nothing was written.
    IgnoreFields {
        /// Why.
        error: String,
    },
}

/// Whether the object is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It exists, healthy or not.
    Available,
    /// The spoke says that it does not exist.
    NotAvailable,
    /// The spoke did not say.
    Unknown {
        /// What it said instead.
        error: String,
    },
    /// The manifest does not lead to an object: its JSON is bad or the spoke does not know its kind.
    IncompleteMeta,
}

/// What the feedback rules read from the object.
#[derive(Debug, Clone, PartialEq)]
pub enum Feedback {
    /// The object could not be read: values and verdict stay as they were, as in Open Cluster Management.
    Untouched,
    /// The manifest has no feedback rules.
    NoRules,
    /// Every rule yielded what it could.
    Synced(Vec<FeedbackValue>),
    /// Some rules failed.
    Failed {
        /// What the others yielded.
        values: Vec<FeedbackValue>,
        /// The failures as one text.
        errors: String,
    },
}

/// What the condition rules made of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// The object could not be read: rule conditions stay as they were.
    Untouched,
    /// The outcomes in the order of the rules. A manifest without rules has an empty list even when its object cannot
    /// be read; that is how the conditions of deleted rules go away.
    Evaluated(Vec<RuleOutcome>),
}

/// What one condition rule made of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOutcome {
    /// Type of the condition, given by the rule.
    pub condition: String,
    /// Whether it holds.
    pub status: Truth,
    /// Starts with `ConditionRule`: that is how such a condition is known later.
    pub reason: String,
    /// The finding for a person to read.
    pub message: String,
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Truth {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the text on the wire; what is neither true nor false is unknown.
    pub fn from_wire(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}
