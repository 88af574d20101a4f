//! Drill files: what can be written, and how mistakes are told.

use super::super::set::{load, names};
use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const REST: &str = "expect: {code: OK, exit: 0}\n";

#[test]
fn every_built_in_drill_can_be_read() {
    assert!(names().len() >= 70, "{}", names().len());
    for name in names() {
        let script = load(name).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(script.about.ends_with('.'), "{name}: {}", script.about);
    }
}

#[test]
fn every_step_can_be_written() {
    let text = "\
about: Everything.
needs: [linux, unix, proc]
limits: {deadline: 500ms}
host: {options: [-v], environment: {A: b}, chosen_by: variable, leash: true, request_bytes: 9, stdout: closed}
files: {a/b: {text: x, executable: true}}
engine:
  - read: all
  - read: 5
  - write: {text: a, to: stderr, times: 3, pieces: 2, pause: 1ms}
  - write: {base64: /w==, times: forever}
  - answer: OK
  - answer: {code: X, message: y}
  - close: stdin
  - sleep: 5ms
  - sleep: forever
  - ignore: [TERM, SIGHUP]
  - ready
  - list_environment: stdout
  - stop
  - start:
      holds: [stdout, stderr]
      session: true
      orphan: true
      deep: 4
      ignore: [TERM]
      steps:
        - start: {refork: true}
        - exit: 3
  - die: KILL
when_ready:
  - signal: TERM
  - kill: inner
  - freeze: 5ms
  - sleep: 5ms
  - close: leash
expect:
  code: OK
  message: /a.c/
  line: x
  exit: SIGKILL
  reason: shape
  launch: completed
  within: 1s
  survivors: 0
  warnings: [a, /b/]
  report: {process.pid: null}
";
    let script = Script::parse("x", text).unwrap_or_else(|why| panic!("{why}"));
    let Played::Steps(steps) = &script.engine else { panic!() };
    assert_eq!(steps.len(), 15);
    let Step::Write(write) = &steps[3] else { panic!() };
    assert_eq!((write.bytes.as_slice(), write.times), (&b"\xff"[..], None));
    let Step::Answer(Answer(bytes)) = &steps[4] else { panic!() };
    assert_eq!(bytes, b"{\"version\":1,\"ok\":true,\"code\":\"OK\",\"message\":\"\"}\n");
    assert_eq!(script.expect.exit, Exit::Signal(Signal("SIGKILL".into())));
    let (below, descendant) = script.steps(&[13]).unwrap();
    assert_eq!((below.len(), descendant.map(|found| found.deep)), (2, Some(4)));
    assert!(script.steps(&[13, 0]).is_some_and(|(_, found)| found.is_some_and(|it| it.refork)));
    for path in [&[99][..], &[0], &[13, 1], &[13, 0, 0, 0]] {
        assert!(script.steps(path).is_none(), "{path:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_are_told_with_their_place_and_field() {
    let engine = |step: &str| format!("about: x\nengine:\n  - ready\n  - {step}\n{REST}");
    for (text, start, part) in [
        (format!("{REST}engine: []\n"), "x:1:1: ", "missing field `about`"),
        ("about: x\nengine: []\n".into(), "x:1:1: ", "missing field `expect`"),
        ("- about: x\n".into(), "x:1:1: ", "expected a mapping with the fields of a drill"),
        (format!("about: x\nengine: []\n{REST}---\nabout: y\n"), "x:1:1: ", "document"),
        (format!("\u{feff}abou: x\nengine: []\n{REST}"), "x:1:1: ", "abou"),
        (format!("about: x\nnope: 1\n{REST}"), "x:2:1: ", "unknown field `nope`"),
        (format!("about: x\nabout: y\n{REST}"), "x:2:1: ", "duplicate field `about`"),
        ("{about: x, engine: [], \"about\": y}\n".into(), "x:1:24: ", "duplicate field `about`"),
        (
            engine("write: {text: a, text: b}"),
            "x:4:12: engine[1].write: ",
            "duplicate field `text`",
        ),
        (format!("'about': ''\nengine: []\n{REST}"), "x:1:1: about: ", "one sentence"),
        (
            "{\"engine\": [], 'about': \"\", expect: {code: OK, exit: 0}}\n".into(),
            "x:1:16: about: ",
            "one sentence",
        ),
        (
            format!("# about: no\n\"start\" : {{program: y}}\nabout: x\nengine: []\n{REST}"),
            "x:2:1: start: ",
            "`engine`",
        ),
        (format!("about: \"\"\nengine: []\n{REST}"), "x:1:1: about: ", "one sentence"),
        (format!("about: x\n{REST}"), "x:1:1: engine: ", "is missing"),
        (
            format!("about: x\nengine: []\nstart: {{program: y}}\n{REST}"),
            "x:3:1: start: ",
            "`engine`",
        ),
        (format!("about: x\nengine: {{}}\n{REST}"), "x:2:9: engine: ", "expected a sequence"),
        (engine("raed: all"), "x:4:5: engine[1]: ", "unknown variant `raed`"),
        (engine("read: al"), "x:4:11: engine[1].read: ", "expected a number, or all"),
        (engine("read: -1"), "x:4:11: engine[1].read: ", "-1"),
        (engine("write: {txt: a}"), "x:4:13: engine[1].write: ", "unknown field `txt`"),
        (engine("write: {}"), "x:4:12: engine[1].write: ", "`text` and `base64`"),
        (engine("write: {base64: '!'}"), "x:4:12: engine[1].write: ", "field `base64`"),
        (engine("write: {text: a, pieces: 0}"), "x:4:12: engine[1].write: ", "field `pieces`"),
        (engine("write: {text: '', times: forever}"), "x:4:12: engine[1].write: ", "field `times`"),
        (engine("answer: NO"), "x:4:13: engine[1].answer: ", "expected OK, or {code"),
        (engine("answer: {code: X}"), "x:4:13: engine[1].answer: ", "missing field `message`"),
        (engine("sleep: 5"), "x:4:12: engine[1].sleep: ", "a number and a unit"),
        (engine("close: all"), "x:4:12: engine[1].close: ", "unknown variant `all`"),
        (engine("die: NOPE"), "x:4:10: engine[1].die: ", "\"NOPE\" is not a signal"),
        (
            engine("ignore: [TERM, KILL]"),
            "x:4:20: engine[1].ignore[1]: ",
            "SIGKILL cannot be ignored",
        ),
        (
            engine("start: {ignore: [STOP]}"),
            "x:4:22: engine[1].start.ignore[0]: ",
            "SIGSTOP cannot be ignored",
        ),
        (engine("exit: 256"), "x:4:11: engine[1].exit: ", "256 is not 0 to 255"),
        (engine("exit: -1"), "x:4:11: engine[1].exit: ", "-1 is not 0 to 255"),
        (engine("start: {deep: -1}"), "x:4:12: engine[1].start: ", "field `deep` must be 1 to 32"),
        (engine("exit: 1\n    read: all"), "x:4:5: engine[1]: ", "single key"),
        (engine("start: {deep: 0}"), "x:4:12: engine[1].start: ", "field `deep`"),
        (engine("start: {refork: true, deep: 2}"), "x:4:12: engine[1].start: ", "field `refork`"),
        (
            engine("start: {steps: [{raed: all}]}"),
            "x:4:22: engine[1].start.steps[0]: ",
            "unknown variant `raed`",
        ),
        ("about: x\nengine: []\nexpect: {exit: 0}\n".into(), "x:3:9: expect: ", "`code` or `line`"),
        ("about: x\nengine: []\nexpect: {code: OK}\n".into(), "x:3:9: expect: ", "`exit`"),
        (
            "about: x\nengine: []\nexpect: {code: OK, exit: 256}\n".into(),
            "x:3:26: expect.exit: ",
            "an exit code, or the name of a signal",
        ),
        (
            "about: x\nengine: []\nexpect: {code: '/(/', exit: 0}\n".into(),
            "x:3:16: expect.code: ",
            "/(/",
        ),
        (
            "about: x\nengine: []\nexpect: {code: OK, exit: 0, report: {a: '/(/'}}\n".into(),
            "x:3:9: expect: ",
            "field `report`: a: ",
        ),
        (
            format!("about: x\nlimits: {{deadline: 0s}}\nengine: []\n{REST}"),
            "x:2:20: limits.deadline: ",
            "more than zero",
        ),
        (
            format!("about: x\nhost: {{request_bytes: 200000}}\nengine: []\n{REST}"),
            "x:2:23: host.request_bytes: ",
            "up to 120000",
        ),
        (
            format!("about: x\nengine: []\nwhen_ready: [{{signal: TERM}}]\n{REST}"),
            "x:3:1: when_ready: ",
            "needs a step `ready`",
        ),
        (
            format!("about: x\nengine: [ready]\nwhen_ready: [{{close: leash}}]\n{REST}"),
            "x:3:1: when_ready: ",
            "`host: {leash: true}`",
        ),
        (
            format!("about: x\nfiles: {{../a: {{text: b}}}}\nengine: []\n{REST}"),
            "x:2:1: files: ",
            "\"../a\"",
        ),
        (
            format!("about: x\nengine: []\nfiles: {{a: {{text: b}}, a/b: {{text: c}}}}\n{REST}"),
            "x:3:1: files: ",
            "\"a/b\" is below it",
        ),
        (
            format!("about: x\nfiles: {{'a\\b': {{text: b}}}}\nengine: []\n{REST}"),
            "x:2:1: files: ",
            "is no name for a file",
        ),
        (
            format!("about: x\nhost: {{environment: {{A=B: c}}}}\nengine: []\n{REST}"),
            "x:2:22: host.environment: ",
            "\"A=B\" is no name of a variable",
        ),
        (
            format!("about: x\nhost: {{environment: {{A: \"\\0\"}}}}\nengine: []\n{REST}"),
            "x:2:25: host.environment.A: ",
            "NUL",
        ),
        (
            format!("about: x\nhost: {{options: [\"a\\0\"]}}\nengine: []\n{REST}"),
            "x:2:18: host.options[0]: ",
            "NUL",
        ),
        ("about: [".into(), "x:", ""),
        ("about: x\n---\nabout: y\n".into(), "x:", ""),
        (String::new(), "x", ""),
    ] {
        let why = Script::parse("x", &text).expect_err(&text);
        assert!(why.starts_with(start) && why.contains(part), "{text}: {why}");
        assert!(!why.contains('\n') && !why.contains(" at line "), "{why}");
    }
}

#[test]
fn no_file_ends_the_reader() {
    let large = Script::parse("x", &" ".repeat(MAX_BYTES + 1)).unwrap_err();
    assert_eq!(large, "x: larger than 65536 bytes");
    let nested = "[{start: {steps: ".repeat(3_000);
    let bomb = (1..30).fold("a0: &a0 [x]\n".to_owned(), |text, n| {
        format!("{text}a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)
    });
    for text in [format!("about: x\nengine: {nested}"), bomb, "[".repeat(MAX_BYTES)] {
        let began = Instant::now();
        assert!(Script::parse("x", &text).is_err_and(|why| !why.contains("larger")));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

proptest! {
    #[test]
    fn a_mistake_is_one_line(text in any::<String>(), at in any::<prop::sample::Index>()) {
        // Any text alone, and any text in the middle of a drill.
        let whole = "about: x\nengine: [{read: all}, {write: {text: a}}, {start: {deep: 2}}]\n\
                     when_ready: [{signal: TERM}]\nexpect: {code: OK, exit: 0}\n";
        let (start, end) = whole.split_at(at.index(whole.len()));
        for text in [text.clone(), format!("{start}{text}{end}")] {
            if let Err(why) = Script::parse("x", &text) {
                prop_assert!(!why.contains('\n'), "{}", why);
            }
        }
    }
}

#[test]
fn needs_follow_from_the_steps() {
    let needs = |steps: &str, more: &str| {
        let text = format!("about: x\nengine: {steps}\n{more}{REST}");
        Script::parse("x", &text).unwrap_or_else(|why| panic!("{why}")).needs()
    };
    assert_eq!(needs("[{read: all}, {start: {deep: 3}}]", ""), []);
    assert_eq!(needs("[stop]", ""), [Need::Unix]);
    assert_eq!(needs("[{start: {steps: [{die: TERM}]}}]", ""), [Need::Unix]);
    assert_eq!(needs("[{start: {session: true}}]", "needs: [uv]\n"), [Need::Uv, Need::Unix]);
    let more = "when_ready: [{freeze: 1s}]\n";
    assert_eq!(needs("[ready]", more), [Need::Proc]);
    assert_eq!(needs("[ready]", "when_ready: [{signal: INT}]\n"), [Need::Unix]);
    assert_eq!(needs("[]", "host: {request_bytes: 120000}\n"), [Need::Unix]);
}

#[test]
fn text_is_exact_or_a_pattern() {
    let text = "about: x\nengine: []\nexpect: {code: OK, exit: 0, reason: null}\n";
    let script = Script::parse("x", text).unwrap_or_else(|why| panic!("{why}"));
    assert!(script.expect.reason.is_some_and(|reason| reason.matches("null")));
    let matches = |text: &str, seen| Text::try_from(text.to_owned()).unwrap().matches(seen);
    assert!(matches("a.c", "a.c") && !matches("a.c", "abc") && !matches("a", "ab"));
    assert!(matches("/a.c/", "xabcx") && !matches("/^a$/", "ab") && matches("/", "/"));
}
