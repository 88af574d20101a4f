//! What a command prints on its own streams, where no supervisor stands between.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use super::process;

/// What a command prints on stdout, or on stderr if nothing came of it; and its exit code.
pub type CommandOutput = Result<(String, u8), (String, u8)>;

/// Prints what a command has to say and returns its exit code.
pub(super) fn print_output(output: CommandOutput) -> u8 {
    match output {
        Ok((text, exit)) => match print(&text) {
            Ok(()) => exit,
            // As the shell's own tools do it: who closes the pipe has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => exit,
            Err(error) => {
                eprint_bounded(&format!("error: cannot print it: {error}"));
                exit.max(1)
            }
        },
        Err((why, exit)) => {
            eprint_bounded(&why);
            exit
        }
    }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// A hint that nobody has room for is lost; it is not waited for long.
pub(super) fn eprint_bounded(text: &str) {
    let patience = Duration::from_millis(100);
    process::bounded_write::write(std::io::stderr(), format!("{text}\n").as_bytes(), patience);
}
