//! The log on stderr, for whoever asks for it with `-v` or `SATYRN_LOG`.

use super::context::Context;
use super::process;

/// Starts logging to stderr, where it was asked for.
///
/// # Errors
/// `SATYRN_LOG` cannot be read.
pub(super) fn log(verbose: u8, context: &Context) -> Result<(), String> {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::prelude::*;
    let filter = match (verbose, context.var("SATYRN_LOG")) {
        (0, None) => return Ok(()),
        (0, Some(filter)) => filter
            .to_string_lossy()
            .parse::<Targets>()
            .map_err(|error| format!("SATYRN_LOG cannot be read: {error}"))?,
        (1, _) => Targets::new().with_default(LevelFilter::INFO),
        (_, _) => Targets::new().with_default(LevelFilter::DEBUG),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(|| process::bounded_write::Stderr)
        .with_ansi(false);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    Ok(())
}
