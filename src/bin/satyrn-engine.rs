//! The engine: `satyrn-engine check` and `satyrn-engine protocol`.

/// That of musl asks the system for memory dozens of times in a run of some hundred microseconds.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    satyrn::engine::cli::main()
}
