//! Windows: one process is the whole host, in a job that ends with it.

pub(in crate::host) mod bounded_write;
mod child;
pub(in crate::host) mod observed;
pub(in crate::host) mod self_ops;
mod supervisor;
mod worker;

pub(in crate::host) use child::{Child, ChildStreams, own_executable, spawn};
pub(in crate::host) use supervisor::run;
pub(in crate::host) use worker::{announce_deadline, defer_parent_death, forward_cancels};

/// There are no signals here.
pub(in crate::host) fn unblock() {}
