//! Unix: a supervisor, a worker, and the program, each in a process of its own.

pub(in crate::host) mod bounded_write;
mod channel;
mod child;
mod clock;
mod launch;
pub(in crate::host) mod observed;
pub(in crate::host) mod self_ops;
mod signals;
mod supervisor;
mod tree;
mod worker;

pub(in crate::host) use child::{Child, ChildStreams, own_executable, spawn};
pub(in crate::host) use signals::unblock;
pub(in crate::host) use supervisor::run;
pub(in crate::host) use worker::{announce_deadline, defer_parent_death, forward_cancels};
