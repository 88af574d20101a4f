//! Windows: one process is the whole host, in a job that ends with it.

pub(in crate::host) mod bounded_write;
mod child;
pub(in crate::host) mod observed;
pub(in crate::host) mod self_ops;

pub(in crate::host) use child::{
    CancelSource, Child, ChildStreams, announce, catch_panic, deliver, dispatch, own_executable,
    spawn,
};
