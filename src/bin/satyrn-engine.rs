//! The engine: `satyrn-engine check` and `satyrn-engine protocol`.

fn main() -> std::process::ExitCode {
    satyrn::engine::cli::main()
}
