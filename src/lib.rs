//! satyrn: a one-shot process host, and the engine that it runs by default.
#![forbid(unsafe_code)]

pub mod duration;
pub mod engine;
pub mod host;
pub mod json;
pub mod line;
pub mod protocol;
