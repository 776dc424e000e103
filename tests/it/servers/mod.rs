//! Real servers for the tests: etcd, kube-apiserver, kube-controller-manager.
//!
//! [`Lab`] is what a case gets: control planes that are started when first asked for and shared by all cases, each
//! case in namespaces of its own. [`binaries`] finds or builds the programs, [`keeper`] starts them so that none
//! survives us, [`certificates`] and [`kubeconfig`] let anyone in, [`control_plane`] puts it together.
//! [`wire`] stands between an agent and its servers, to look at its requests and to break them.

pub(crate) mod binaries;
mod certificates;
pub(crate) mod control_plane;
pub(crate) mod install;
mod keeper;
mod kubeconfig;
mod lab;
pub(crate) mod wait;
pub(crate) mod wire;

pub(crate) use lab::Lab;
