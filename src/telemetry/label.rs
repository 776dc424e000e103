//! Labels of metrics: closed sets, so that nothing a user writes can make a new time series.

/// Declares the values that one label can have, and how each is written.
macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$meaning])* $value,)*
        }

        impl $name {
            /// Every value, so that a counter can begin at zero instead of being absent.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            /// How it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }

        impl prometheus_client::encoding::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> std::fmt::Result {
                prometheus_client::encoding::EncodeLabelValue::encode(&self.as_str(), encoder)
            }
        }
    };
}
pub(crate) use label;

label! {
    /// Which of the two clusters an agent talks to.
    Side {
        /// The cluster that holds the works.
        Hub = "hub",
        /// The cluster that is managed.
        Spoke = "spoke",
    }
}

label! {
    /// What is asked of a cluster.
    Verb {
        /// One object, or what the cluster serves.
        Get = "get",
        /// Many objects.
        List = "list",
        /// What happens to many objects.
        Watch = "watch",
        /// A new object, or a question that is asked as one.
        Create = "create",
        /// An object by server-side apply.
        Apply = "apply",
        /// A change of an object.
        Patch = "patch",
        /// A replacement of an object.
        Update = "update",
        /// An object's end.
        Delete = "delete",
    }
}

label! {
    /// How a cluster answers.
    Answer {
        /// As asked.
        Done = "done",
        /// The request does not fit what is there: not found, or changed meanwhile.
        Missed = "missed",
        /// The request is not allowed, or not valid.
        Refused = "refused",
        /// Too many requests.
        Throttled = "throttled",
        /// The cluster failed.
        Failed = "failed",
        /// There was no answer, or none in time.
        Unanswered = "unanswered",
    }
}

label! {
    /// Why a request waits before it is sent.
    Hold {
        /// As many are in flight as the server copes with.
        Full = "full",
        /// The server has asked for quiet.
        Quiet = "quiet",
        /// The server has asked for it once more, later.
        Again = "again",
    }
}

label! {
    /// What a write is for.
    Write {
        /// A manifest, by server-side apply.
        Apply = "apply",
        /// A manifest that is only created.
        Create = "create",
        /// Ownership of an object or of its fields.
        Adjust = "adjust",
        /// The end of an object.
        Delete = "delete",
        /// The agent's own record of what it has applied.
        Record = "record",
        /// The status of a work.
        Status = "status",
        /// The finalizer of a work.
        Finalizer = "finalizer",
        /// An Event.
        Event = "event",
        /// The lease by which replicas elect a leader.
        Lease = "lease",
    }
}

label! {
    /// How a pass ends.
    Outcome {
        /// Everything is as it is asked for.
        Done = "done",
        /// It waits for objects to go, or for a grace period to pass.
        Waiting = "waiting",
        /// Some manifests could not be applied.
        ManifestsFailed = "manifests_failed",
        /// The hub did not take a write.
        HubFailed = "hub_failed",
        /// The spoke did not take a request that is not a manifest.
        SpokeFailed = "spoke_failed",
        /// The work cannot be served as it is.
        Unservable = "unservable",
        /// The pass panicked.
        Panicked = "panicked",
    }
}

label! {
    /// Why a user's expression was stopped.
    StopCause {
        /// It took too long.
        Time = "time",
        /// It took too much memory.
        Memory = "memory",
        /// The evaluating process ended.
        Fault = "fault",
    }
}

label! {
    /// What becomes of an Event.
    EventFate {
        /// It is on the hub.
        Written = "written",
        /// The hub did not take it.
        Failed = "failed",
        /// Too many were waiting.
        Dropped = "dropped",
    }
}
