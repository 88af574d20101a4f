//! The host: `satyrn-host implement CONTRACT`, and the embedded engine that it runs by default.

/// That of musl asks the system for memory dozens of times in a run of some hundred microseconds.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.len() == 1 && args[0] == "protocol" {
        return satyrn::engine::cli::protocol().into();
    }
    satyrn::host::main(satyrn::engine::cli::protocol)
}
