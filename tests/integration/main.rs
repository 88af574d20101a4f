//! The integration tier: real binaries, real processes. One test binary, a file per subject.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "tests start programs")]
#![cfg_attr(unix, expect(clippy::print_stderr, reason = "a test says what it could not try"))]

mod architecture;
#[cfg(unix)]
mod bounds;
mod common;
mod conform;
#[cfg(target_os = "linux")]
mod containment;
mod contract_parity;
#[cfg(target_os = "linux")]
mod docs;
mod doctor;
mod drill;
mod engine;
mod help;
mod implement;
mod imports;
mod pages;
#[cfg(target_os = "linux")]
mod resources;
mod schema;
mod spec;
#[cfg(any(target_os = "linux", windows))]
mod tree;
#[cfg(unix)]
mod uv;
