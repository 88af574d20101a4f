use super::launch::{Capture, Program};
use super::observation::{CancelledBy, Input, Stream};
use super::*;
use crate::host::process::Streams;
use std::cell::Cell;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::sleep;

type Pump<'a> = StdioPump<'a, DuplexStream, DuplexStream, DuplexStream>;

/// The engine's ends of the three streams.
struct Far {
    stdin: DuplexStream,
    stdout: DuplexStream,
    stderr: DuplexStream,
}

/// What `implement` keeps.
static STDOUT: Capture = Capture::Head(1 << 20);
static STDERR: Capture = Capture::Tail(64 << 10);

fn pair(request: &[u8], limits: Limits) -> (Pump<'_>, Far) {
    pair_keeping(request, [&STDOUT, &STDERR], limits)
}

fn pair_keeping<'a>(
    request: &'a [u8],
    captures: [&'a Capture; 2],
    limits: Limits,
) -> (Pump<'a>, Far) {
    let ((stdin, far_in), (stdout, far_out), (stderr, far_err)) =
        (duplex(1024), duplex(1024), duplex(1024));
    let streams = Streams { stdin: Some(stdin), stdout, stderr };
    (
        StdioPump::new(streams, request, captures, limits),
        Far { stdin: far_in, stdout: far_out, stderr: far_err },
    )
}

fn limits(deadline_ms: u64) -> Limits {
    Limits { deadline: Duration::from_millis(deadline_ms), ..Limits::default() }
}

/// Runs a conversation against a scripted engine whose exit is the end of the script.
async fn run<'a, F: Future<Output = Option<DuplexStream>>>(
    request: &'a [u8],
    limits: Limits,
    cancel: &Cancel,
    script: impl FnOnce(Far) -> F,
) -> (Option<Stop>, Pump<'a>, Duration, Option<DuplexStream>) {
    run_pair(pair(request, limits), limits, cancel, script).await
}

async fn run_pair<'a, F: Future<Output = Option<DuplexStream>>>(
    (mut pump, far): (Pump<'a>, Far),
    limits: Limits,
    cancel: &Cancel,
    script: impl FnOnce(Far) -> F,
) -> (Option<Stop>, Pump<'a>, Duration, Option<DuplexStream>) {
    let gone = Cell::new(false);
    let held = Cell::new(None);
    let engine = async {
        held.set(script(far).await);
        gone.set(true);
    };
    let began = Instant::now();
    let stop = pump.run(|| gone.get(), engine, began + limits.deadline, cancel).await;
    (stop, pump, began.elapsed(), held.take())
}

#[tokio::test(start_paused = true)]
async fn a_request_above_the_pipe_is_delivered_while_both_outputs_flow() {
    let request = vec![b'r'; 100_000];
    let (stop, pump, took, _) = run(&request, limits(1000), &Cancel::default(), async |mut far| {
        far.stdout.write_all(&[b'o'; 5000]).await.unwrap();
        far.stderr.write_all(&[b'e'; 5000]).await.unwrap();
        let mut read = Vec::new();
        far.stdin.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), 100_000);
        far.stdout.write_all(b"!").await.unwrap();
        None
    })
    .await;
    assert_eq!((stop, pump.input), (None, Input::Delivered));
    let (out, err) = pump.captured();
    assert_eq!((out.total, out.complete, out.bytes.last()), (5001, true, Some(&b'!')));
    assert_eq!(err.total, 5000);
    assert!(took < Duration::from_millis(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_read_costs_nothing_but_a_fact() {
    let request = vec![b'r'; 100_000];
    let (stop, mut pump, ..) = run(&request, limits(1000), &Cancel::default(), async |mut far| {
        drop(far.stdin);
        far.stdout.write_all(b"x").await.unwrap();
        None
    })
    .await;
    pump.drain().await;
    assert_eq!((stop, pump.input), (None, Input::Failed));
    assert_eq!(pump.captured().0.bytes, b"x");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_the_write_and_is_not_moved_by_activity() {
    let request = vec![b'r'; 100_000];
    let (stop, pump, took, _) = run(&request, limits(250), &Cancel::default(), async |mut far| {
        loop {
            far.stdout.write_all(b" ").await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!((stop, pump.input), (Some(Stop::Deadline), Input::Unread));
    assert_eq!(took, Duration::from_millis(250));
    assert_eq!(pump.captured().0.total, 3);
}

#[tokio::test(start_paused = true)]
async fn stdout_up_to_the_cap_is_kept_and_one_byte_more_ends_it() {
    let head = Capture::Head(3000);
    let over = Some(Stop::OutputLimit(Stream::Stdout));
    for (bytes, expected) in [(3000, None), (3001, over)] {
        let limits = limits(1000);
        let pair = pair_keeping(b"", [&head, &STDERR], limits);
        let (stop, pump, ..) = run_pair(pair, limits, &Cancel::default(), async |mut far| {
            let _ = far.stdout.write_all(&vec![b'x'; bytes]).await;
            None
        })
        .await;
        assert_eq!(stop, expected);
        assert_eq!(pump.captured().0.bytes.len(), 3000);
    }
}

/// A host that does not get a processor while the grace passes finds the bytes only afterwards.
#[tokio::test(start_paused = true)]
async fn what_is_found_above_the_cap_at_the_very_end_counts_too() {
    for (bytes, over) in [(1000, None), (1001, Some(Stop::OutputLimit(Stream::Stdout)))] {
        let head = Capture::Head(1000);
        let (mut pump, mut far) = pair_keeping(b"", [&head, &STDERR], limits(30_000));
        let deadline = Instant::now() + Duration::from_secs(30);
        let stop = pump.run(|| true, std::future::ready(()), deadline, &Cancel::default()).await;
        assert_eq!(stop, None);
        far.stdout.write_all(&vec![b'x'; bytes]).await.unwrap();
        drop(far);
        assert_eq!(pump.drain().await, over);
        assert_eq!(pump.captured().0.bytes.len(), 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_stderr_is_kept() {
    let (limits, tail) = (limits(1000), Capture::Tail(1000));
    let pair = pair_keeping(b"", [&STDOUT, &tail], limits);
    let (stop, mut pump, ..) = run_pair(pair, limits, &Cancel::default(), async |mut far| {
        far.stderr.write_all(&[b'a'; 5000]).await.unwrap();
        far.stderr.write_all(b"z").await.unwrap();
        None
    })
    .await;
    pump.drain().await;
    let (_, err) = pump.captured();
    assert_eq!((stop, err.total, err.bytes.len()), (None, 5001, 1000));
    assert_eq!(err.bytes.last(), Some(&b'z'));
}

#[tokio::test(start_paused = true)]
async fn after_the_exit_a_held_stdout_is_given_a_grace_and_no_more() {
    let (stop, pump, took, held) = run(b"", limits(30_000), &Cancel::default(), async |mut far| {
        far.stdout.write_all(b"answer").await.unwrap();
        Some(far.stdout)
    })
    .await;
    assert_eq!((stop, took), (None, Duration::from_millis(100)));
    drop(held);
    let (out, _) = pump.captured();
    assert_eq!((out.bytes.as_slice(), out.complete), (&b"answer"[..], false));
}

#[tokio::test(start_paused = true)]
async fn a_slow_writer_after_the_exit_is_heard_out_within_bounds() {
    for (chunks, pause, total, took_ms) in
        [(20, 50, 20, 1050), (200, 50, 39, 2000), (5, 150, 1, 150)]
    {
        let (mut pump, far) = pair(b"", limits(30_000));
        drop((far.stdin, far.stderr));
        let mut stdout = far.stdout;
        let writer = tokio::spawn(async move {
            for _ in 0..chunks {
                sleep(Duration::from_millis(pause)).await;
                if stdout.write_all(b"x").await.is_err() {
                    return;
                }
            }
            sleep(Duration::from_mins(1)).await;
        });
        let began = Instant::now();
        let deadline = began + pump.limits.deadline;
        let stop = pump.run(|| true, std::future::ready(()), deadline, &Cancel::default()).await;
        assert_eq!(stop, None);
        let took = began.elapsed();
        writer.abort();
        let (out, _) = pump.captured();
        let slack = took.as_millis().abs_diff(took_ms);
        assert!(slack <= 100, "{chunks} x {pause} ms: {took:?}");
        assert!(out.total.abs_diff(total) <= 2, "{chunks} x {pause} ms: {}", out.total);
    }
}

#[tokio::test(start_paused = true)]
async fn the_grace_never_passes_the_deadline_and_what_arrived_is_judged() {
    let (stop, _, took, _held) =
        run(b"", limits(50), &Cancel::default(), async |far| Some(far.stdout)).await;
    assert_eq!((stop, took), (None, Duration::from_millis(50)));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_frozen_past_the_deadline_looks_once_more() {
    for finished in [true, false] {
        let (mut pump, far) = pair(b"", limits(100));
        let mut stdout = far.stdout;
        stdout.write_all(b"answer").await.unwrap();
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(10)).await;
        let deadline = began + pump.limits.deadline;
        let stop = {
            if finished {
                drop(stdout);
            }
            let exited = std::future::pending();
            pump.run(|| finished, exited, deadline, &Cancel::default()).await
        };
        assert_eq!(stop, (!finished).then_some(Stop::Deadline));
        assert_eq!(pump.captured().0.bytes, b"answer");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_it_and_names_who_asked_first() {
    let cancel = Cancel::default();
    let asked = cancel.clone();
    let (stop, ..) = run(b"", limits(30_000), &cancel, async |far| {
        sleep(Duration::from_millis(10)).await;
        asked.ask(CancelledBy::Lifeline);
        asked.ask(CancelledBy::Signal(2, "SIGINT"));
        std::future::pending::<()>().await;
        Some(far.stdout)
    })
    .await;
    assert_eq!(stop, Some(Stop::Cancelled(CancelledBy::Lifeline)));
    tokio::time::timeout(Duration::ZERO, cancel.asked(2)).await.unwrap();
}

#[test]
#[should_panic(expected = "must not start a process")]
fn this_tier_cannot_start_a_process() {
    let launch = Launch {
        program: Program::File("/bin/true".into()),
        args: Vec::new(),
        cwd: "/".into(),
        env: Vec::new(),
        stdin: Stdin::Bytes(Vec::new()),
        stdout: Capture::Head(0),
        stderr: Capture::Tail(0),
    };
    let _ = exchange(&launch, &Limits::default(), &Cancel::default());
}
