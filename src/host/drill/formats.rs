//! Results for people and for programs: a table, JSON, `JUnit`'s XML, TAP. Pure.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::host::cli::drill::Format;
use crate::line::{MAX_CHARS, escape, is_unprintable, shorten};

/// What came of one drill, or of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it is about; may be empty.
    pub about: String,
    /// What came of it.
    #[serde(flatten)]
    pub state: State,
    /// How often it ran.
    pub runs: u32,
    /// How many of them failed.
    pub failed_runs: u32,
    /// The time of the longest run, in whole milliseconds.
    pub elapsed_ms: u64,
    /// The host's report of the run that is told of.
    pub report: Option<Box<RawValue>>,
    /// The command that runs this one alone.
    pub again: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum State {
    /// Everything that was expected was seen.
    Passed,
    /// It was not.
    Failed {
        /// What differs.
        mismatches: Vec<Mismatch>,
    },
    /// It cannot run here. Never a success.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// What was looked at.
    pub what: String,
    /// What it should be.
    pub expected: String,
    /// What it is.
    pub seen: String,
}

/// Everything that came of one call.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// `drill` or `conform`.
    pub command: &'static str,
    /// In the order in which they were asked for.
    pub results: Vec<Row>,
    /// From the first start to the last end, in whole milliseconds.
    pub elapsed_ms: u64,
}

impl Results {
    /// How many passed, failed and were skipped.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        let count =
            |holds: fn(&State) -> bool| self.results.iter().filter(|row| holds(&row.state)).count();
        [
            count(|state| matches!(state, State::Passed)),
            count(|state| matches!(state, State::Failed { .. })),
            count(|state| matches!(state, State::Skipped { .. })),
        ]
    }

    /// The text for stdout, with its last line feed.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Json => self.json(),
            Format::Junit => self.junit(),
            Format::Tap => self.tap(),
        }
    }

    fn table(&self) -> String {
        let mut out = String::new();
        let width = self.results.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        for row in &self.results {
            let (word, note) = match &row.state {
                State::Passed => ("ok  ", time(row.elapsed_ms)),
                State::Failed { .. } => ("FAIL", time(row.elapsed_ms)),
                State::Skipped { reason } => ("skip", escape(reason)),
            };
            let _ = writeln!(out, "{word}  {:width$}  {note}", escape(&row.name));
        }
        for row in &self.results {
            if let Some(text) = failure(row) {
                let _ = write!(out, "\n{}\n{text}", escape(&row.name));
            }
        }
        let [passed, failed, skipped] = self.counts();
        let took = time(self.elapsed_ms);
        let _ = writeln!(out, "\n{passed} passed, {failed} failed, {skipped} skipped in {took}");
        out
    }

    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            passed: usize,
            failed: usize,
            skipped: usize,
            #[serde(flatten)]
            results: &'a Results,
        }
        let [passed, failed, skipped] = self.counts();
        let object = Object { passed, failed, skipped, results: self };
        // Plain structs of strings and numbers always serialise.
        serde_json::to_string(&object).unwrap_or_default() + "\n"
    }

    fn junit(&self) -> String {
        let [_, failed, skipped] = self.counts();
        let counts = format!(
            r#"tests="{}" failures="{failed}" skipped="{skipped}" errors="0" time="{}""#,
            self.results.len(),
            seconds(self.elapsed_ms)
        );
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n\
             <testsuite name=\"satyrn-host {}\" {counts}>\n",
            self.command
        );
        for row in &self.results {
            let _ = write!(
                out,
                r#"<testcase classname="satyrn-host {}" name="{}" time="{}""#,
                self.command,
                xml(&row.name),
                seconds(row.elapsed_ms)
            );
            let _ = match &row.state {
                State::Passed => writeln!(out, "/>"),
                State::Skipped { reason } => {
                    writeln!(out, "><skipped message=\"{}\"/></testcase>", xml(reason))
                }
                State::Failed { mismatches } => {
                    let message: Vec<_> = mismatches.iter().map(Mismatch::in_words).collect();
                    let (message, text) = (message.join("; "), failure(row).unwrap_or_default());
                    let (message, text) = (xml(&message), xml(&text));
                    writeln!(out, "><failure message=\"{message}\">{text}</failure></testcase>")
                }
            };
        }
        out.push_str("</testsuite>\n</testsuites>\n");
        out
    }

    fn tap(&self) -> String {
        let mut out = format!("TAP version 14\n1..{}\n", self.results.len());
        for (row, number) in self.results.iter().zip(1..) {
            let name = tap_text(&row.name);
            let _ = match &row.state {
                State::Passed => writeln!(out, "ok {number} - {name}"),
                State::Skipped { reason } => {
                    writeln!(out, "ok {number} - {name} # SKIP {}", tap_text(reason))
                }
                State::Failed { mismatches } => {
                    let mismatches = serde_json::to_string(mismatches).unwrap_or_default();
                    let again = serde_json::to_string(&row.again).unwrap_or_default();
                    let (mismatches, again) = (printable(&mismatches), printable(&again));
                    writeln!(
                        out,
                        "not ok {number} - {name}\n  ---\n  mismatches: {mismatches}\n  \
                         again: {again}\n  ..."
                    )
                }
            };
        }
        out
    }
}

impl Mismatch {
    fn in_words(&self) -> String {
        format!("{}: expected {}, seen {}", self.what, self.expected, self.seen)
    }
}

/// What a person needs to know of a failure, each line indented.
fn failure(row: &Row) -> Option<String> {
    let State::Failed { mismatches } = &row.state else { return None };
    let mut out = String::new();
    if !row.about.is_empty() {
        let _ = writeln!(out, "  {}", escape(&row.about));
    }
    if row.runs > 1 {
        let _ = writeln!(out, "  {} of {} runs failed; one of them:", row.failed_runs, row.runs);
    }
    for Mismatch { what, expected, seen } in mismatches {
        let _ = writeln!(out, "  {}", escape(what));
        let _ = writeln!(out, "    expected  {}", shorten(&escape(expected), MAX_CHARS));
        let _ = writeln!(out, "    seen      {}", shorten(&escape(seen), MAX_CHARS));
    }
    if let Some(report) = &row.report {
        let _ = writeln!(out, "  report  {}", shorten(&printable(report.get()), 2 * MAX_CHARS));
    }
    let _ = writeln!(out, "  again   {}", escape(&row.again));
    Some(out)
}

/// JSON that no terminal obeys, and still the same JSON: what is not printable stands in strings.
pub(in crate::host) fn printable(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut unit = [0; 2];
    for c in json.chars() {
        if is_unprintable(c) {
            for unit in c.encode_utf16(&mut unit) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn time(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// The time in whole milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Text for an attribute or between tags. What XML cannot hold at all is shown in words.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                out.extend(c.escape_unicode());
            }
            _ => out.push(c),
        }
    }
    out
}

/// Text that cannot be taken for a directive or for another line.
fn tap_text(text: &str) -> String {
    escape(text).replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn results() -> Results {
        let row = |name: &str, state| Row {
            name: name.to_owned(),
            about: "What it is about.".to_owned(),
            state,
            runs: 1,
            failed_runs: 0,
            elapsed_ms: 1234,
            report: None,
            again: format!("satyrn-host drill {name}"),
        };
        let mismatch = Mismatch {
            what: "line".to_owned(),
            expected: "a <b> & \"c\"".to_owned(),
            seen: "d\u{1b}[2K\ne\u{9b}".to_owned(),
        };
        Results {
            command: "drill",
            results: vec![
                row("good", State::Passed),
                row("bad #1", State::Failed { mismatches: vec![mismatch] }),
                row("not-here", State::Skipped { reason: "needs # Windows".to_owned() }),
            ],
            elapsed_ms: 45,
        }
    }

    #[test]
    fn a_table_tells_what_was_expected_and_seen_and_how_to_run_it_again() {
        let expected = "\
ok    good      1.2 s
FAIL  bad #1    1.2 s
skip  not-here  needs # Windows

bad #1
  What it is about.
  line
    expected  a <b> & \"c\"
    seen      d\\u{1b}[2K\\ne\\u{9b}
  again   satyrn-host drill bad #1

1 passed, 1 failed, 1 skipped in 45 ms
";
        assert_eq!(results().render(Format::Table), expected);
    }

    #[test]
    fn json_is_one_line_with_the_counts_in_front() {
        let text = results().render(Format::Json);
        assert!(text.starts_with("{\"passed\":1,\"failed\":1,\"skipped\":1,\"command\":\"drill\""));
        assert_eq!(text.lines().count(), 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["results"][1]["status"], "failed");
        assert_eq!(value["results"][1]["mismatches"][0]["what"], "line");
        assert_eq!(value["results"][2]["reason"], "needs # Windows");
    }

    #[test]
    fn junit_holds_no_character_that_xml_forbids() {
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" skipped="1" errors="0" time="0.045">
<testsuite name="satyrn-host drill" tests="3" failures="1" skipped="1" errors="0" time="0.045">
<testcase classname="satyrn-host drill" name="good" time="1.234"/>
<testcase classname="satyrn-host drill" name="bad #1" time="1.234"><failure message="line: expected a &lt;b&gt; &amp; &quot;c&quot;, seen d\u{1b}[2K&#10;e\u{9b}">  What it is about.&#10;  line&#10;    expected  a &lt;b&gt; &amp; &quot;c&quot;&#10;    seen      d\u{1b}[2K\ne\u{9b}&#10;  again   satyrn-host drill bad #1&#10;</failure></testcase>
<testcase classname="satyrn-host drill" name="not-here" time="1.234"><skipped message="needs # Windows"/></testcase>
</testsuite>
</testsuites>
"#;
        assert_eq!(results().render(Format::Junit), expected);
    }

    #[test]
    fn a_failure_is_cut_for_people_and_whole_for_programs() {
        let mut results = results();
        let State::Failed { mismatches } = &mut results.results[1].state else { panic!() };
        mismatches[0].seen = "x".repeat(1 << 20);
        results.results[1].report =
            Some(RawValue::from_string(format!("\"\u{9b}{}\"", "y".repeat(1 << 20))).unwrap());
        let text = results.render(Format::Table);
        assert!(text.len() < 20_000 && text.contains("xx…\n") && text.contains("\"\\u009byy"));
        assert!(results.render(Format::Json).len() > 2 << 20);
    }

    #[test]
    fn tap_is_numbered_and_no_name_is_a_directive() {
        let text = results().render(Format::Tap);
        let expected = r#"TAP version 14
1..3
ok 1 - good
not ok 2 - bad \#1
  ---
  mismatches: [{"what":"line","expected":"a <b> & \"c\"","seen":"d\u001b[2K\ne\u009b"}]
  again: "satyrn-host drill bad #1"
  ...
ok 3 - not-here # SKIP needs \# Windows
"#;
        assert_eq!(text, expected);
    }
}
