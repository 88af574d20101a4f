//! `satyrn-host implement`: one contract, one engine, one line.

pub mod engines;
pub mod judge;
pub mod plan;
pub mod refusal;
