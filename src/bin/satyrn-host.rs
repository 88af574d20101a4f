//! The host: `satyrn-host implement CONTRACT`, and the embedded engine that it runs by default.

fn main() -> std::process::ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.len() == 1 && args[0] == "protocol" {
        return satyrn::engine::cli::protocol().into();
    }
    satyrn::host::main(satyrn::engine::cli::protocol)
}
