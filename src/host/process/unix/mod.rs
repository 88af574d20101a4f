//! Unix: a supervisor, a worker, and the program, each in a process of its own.

pub(in crate::host) mod bounded_write;
mod child;
mod launch;
pub(in crate::host) mod observed;
pub(in crate::host) mod self_ops;
mod signals;
mod supervisor;
mod tree;

pub(in crate::host) use child::{Child, ChildStreams, spawn};
pub(in crate::host) use signals::CancelSource;
pub(in crate::host) use supervisor::{announce, catch_panic, deliver, dispatch, own_executable};
