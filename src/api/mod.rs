//! The nouns on the wire.
//!
//! One directory per API group, one file per idea. The CRDs that `gitspoke install crds` prints are generated from
//! these types, so a field, its default and its validation are written once, here.
//!
//! Two rules hold for every type that a server sends us:
//!
//! - *Decoding loses nothing.* An absent field, an empty list and a default are three different values, so optional
//!   fields are `Option`s and the default is asked for by a method. Manifests keep their bytes ([`manifest`]).
//! - *Decoding does not fail on what a newer server may say.* An unknown enum value is kept in `Other`; one strange
//!   object must not end the watch that carries a thousand others.
//!
//! This room does no I/O and knows nothing of a client, of Git or of YAML.
//!
//! Start reading at [`work`], then [`gitsource`]; [`crds`] turns both into CustomResourceDefinitions.

pub mod conditions;
pub mod crds;
pub mod digest;
pub mod gitsource;
pub mod manifest;
pub mod names;
mod open_enum;
pub mod revision;
pub mod wellknown;
pub mod work;
