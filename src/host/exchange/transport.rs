//! What every command has to say of an exchange before it looks at what the program answered.

use super::observation::{CancelledBy, Containment, Ended, Observation, StartFault, Stop, Stream};

/// What went wrong between a host and a program, whatever the two speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<'a> {
    /// Nothing ran.
    NeverStarted(&'a StartFault),
    /// The host itself could not go on; something may have run, and was ended.
    HostFailed(&'a str),
    /// Somebody asked for the end.
    Cancelled(&'a CancelledBy),
    /// The deadline passed before the end of stdout and the exit.
    Deadline,
    /// A stream grew above what is kept of it.
    OutputLimit(Stream),
    /// A signal ended it that the host had no part in.
    Signal(&'a str),
    /// Something that it started could get away: the system offers no more, or, with `Lost`, what was
    /// within reach could no longer be seen.
    NotContained(Containment),
    /// How it ended could not be seen.
    NoExit,
}

/// The fault of an exchange that explains the others; `None` where the program ended by itself, with
/// an exit code, and nothing of it is left.
#[must_use]
pub fn transport(seen: &Observation) -> Option<Fault<'_>> {
    if let Some(fault) = &seen.start_fault {
        return Some(Fault::NeverStarted(fault));
    }
    if let Some(why) = &seen.host_fault {
        return Some(Fault::HostFailed(why));
    }
    match &seen.stop {
        Some(Stop::Cancelled(by)) => return Some(Fault::Cancelled(by)),
        Some(Stop::Deadline) => return Some(Fault::Deadline),
        Some(Stop::OutputLimit(stream)) => return Some(Fault::OutputLimit(*stream)),
        None => {}
    }
    match (&seen.ended, seen.containment) {
        (_, Some(Containment::Lost)) => Some(Fault::NotContained(Containment::Lost)),
        (Some(Ended::Signal(name)), _) => Some(Fault::Signal(name)),
        (None, _) => Some(Fault::NoExit),
        (Some(Ended::Exit(_)), Some(Containment::Whole)) => None,
        (Some(Ended::Exit(_)), reach) => {
            Some(Fault::NotContained(reach.unwrap_or(Containment::Group)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_counts() {
        let whole = || Observation {
            started: true,
            ended: Some(Ended::Exit(3)),
            containment: Some(Containment::Whole),
            ..Observation::default()
        };
        let killed = || Some(Ended::Signal("SIGKILL".to_owned()));
        let no_process = StartFault::System("full".to_owned());
        let by = CancelledBy::Lifeline;
        let lost = Some(Containment::Lost);
        let stopped = |stop| Observation { stop: Some(stop), ended: killed(), ..whole() };
        for (seen, expected) in [
            (whole(), None),
            (
                Observation { start_fault: Some(no_process.clone()), ..Observation::default() },
                Some(Fault::NeverStarted(&no_process)),
            ),
            (
                Observation { host_fault: Some("why".to_owned()), ..whole() },
                Some(Fault::HostFailed("why")),
            ),
            (stopped(Stop::Cancelled(by.clone())), Some(Fault::Cancelled(&by))),
            (stopped(Stop::Deadline), Some(Fault::Deadline)),
            (stopped(Stop::OutputLimit(Stream::Stderr)), Some(Fault::OutputLimit(Stream::Stderr))),
            (Observation { containment: lost, ..stopped(Stop::Deadline) }, Some(Fault::Deadline)),
            (Observation { ended: killed(), ..whole() }, Some(Fault::Signal("SIGKILL"))),
            (
                Observation { ended: killed(), containment: lost, ..whole() },
                Some(Fault::NotContained(Containment::Lost)),
            ),
            (Observation { ended: None, ..whole() }, Some(Fault::NoExit)),
            (
                Observation { containment: Some(Containment::Group), ..whole() },
                Some(Fault::NotContained(Containment::Group)),
            ),
        ] {
            assert_eq!(transport(&seen), expected, "{seen:?}");
        }
    }
}
