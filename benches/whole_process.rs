//! Whole processes, from the start to the exit, as a caller pays for them.
//!
//!     cargo bench --bench whole_process                 a table
//!     cargo bench --bench whole_process -- --json       the same as JSON
//!     cargo bench --bench whole_process -- --runs 500
//!     cargo bench --bench whole_process -- --slow       the Python engine on 1 MiB too, once
//!     cargo bench --bench whole_process -- --plain FILE  another build of satyrn-host too
//!
//! All subjects run in turn, each time in another order, so that a machine that changes its speed
//! changes it for all of them, and none always finds the caches as one other leaves them: compare
//! medians and ratios, never a single time. What is measured are copies of the executables, as an
//! installer makes them: a file that a linker has written piece by piece is slower to page in.
#![expect(clippy::unwrap_used, reason = "a bench that cannot run ends")]
#![expect(clippy::cast_precision_loss, reason = "its figures are small")]
#![expect(clippy::print_stdout, reason = "its output is the point")]
#![expect(clippy::disallowed_methods, reason = "it starts programs")]

use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What was built, and what is copied into the directory of a run under the names below.
const HOST_BUILT: &str = env!("CARGO_BIN_EXE_satyrn-host");
const ENGINE_BUILT: &str = env!("CARGO_BIN_EXE_satyrn-engine");
const HOST: &str = "satyrn-host";
const ENGINE: &str = "satyrn-engine";
const PLAIN_HOST: &str = "satyrn-host-plain";

/// One thing that is measured: a command line, and what its stdin is.
struct Subject {
    name: &'static str,
    command: Vec<String>,
    stdin: Option<PathBuf>,
    path: Option<PathBuf>,
    /// Run once only.
    slow: bool,
    times: Vec<Duration>,
    /// User and system time of all runs together, in milliseconds, whatever they started included.
    cpu: f64,
}

const BARE: &str = "`satyrn-engine protocol`, bare";
const PROSE: &str = "`satyrn-engine protocol`, 1 MiB of prose";
const DENSE: &str = "`satyrn-engine protocol`, 1 MiB of short scalars";
const EMBEDDED: &str = "satyrn-host, embedded engine";
const WITH_ENGINE: &str = "satyrn-host --engine satyrn-engine";
const PLAIN: &str = "satyrn-host of another build, embedded engine";

/// The size of the large contracts, in bytes, less than a line more or less.
const LARGE_BYTES: usize = (1 << 20) - 200;

const PYTHON_HOST: &str = "
import subprocess, sys
with open(sys.argv[1], 'rb') as request:
    run = subprocess.run(sys.argv[2:], stdin=request, capture_output=True, timeout=30)
sys.exit(run.returncode)
";

const NODE_HOST: &str = "
const { spawn } = require('node:child_process');
const [request, ...command] = process.argv.slice(1);
const child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] });
const timer = setTimeout(() => child.kill('SIGKILL'), 30000);
let out = '';
child.stdout.on('data', (data) => { out += data; });
child.on('close', (code) => { clearTimeout(timer); JSON.parse(out); process.exitCode = code; });
child.stdin.end(require('node:fs').readFileSync(request));
";

/// Shaped as the reference engine is: the safe loader of `PyYAML` behind the protocol.
const PYTHON_ENGINE: &str = "
import json, sys, yaml
request = json.load(sys.stdin)
with open(request['contract'], encoding='utf-8') as file:
    contract = yaml.safe_load(file.read())
ok = all(isinstance(contract.get(name), str) for name in ('id', 'task'))
json.dump({'version': 1, 'ok': ok, 'code': 'OK', 'message': ''}, sys.stdout)
";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |option: &str| args.iter().skip_while(|arg| *arg != option).nth(1);
    let runs: usize = value("--runs").map_or(200, |runs| runs.parse().unwrap());
    let plain = value("--plain").map(Path::new);
    let dir = tempfile::tempdir().unwrap();
    let built = [(HOST, Path::new(HOST_BUILT)), (ENGINE, Path::new(ENGINE_BUILT))];
    for (name, from) in built.into_iter().chain(plain.map(|from| (PLAIN_HOST, from))) {
        std::fs::copy(from, dir.path().join(name)).unwrap();
    }
    let mut subjects = subjects(dir.path(), plain.is_some());
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    for run in 0..runs {
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        order.sort_by_key(|index| hasher.hash_one((run, index)));
        for index in order {
            let subject = &mut subjects[index];
            if subject.slow && run > 0 {
                continue;
            }
            let (began, cpu) = (Instant::now(), cpu_time());
            let status = subject.command().status().unwrap();
            subject.times.push(began.elapsed());
            subject.cpu += cpu_time() - cpu;
            assert!(status.success(), "{}: {status}", subject.name);
        }
    }
    let many = throughput(dir.path(), runs);
    let peak = peak_memory(dir.path());
    let late = lateness(dir.path());
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    let of = |start: &str| subjects.iter().find(|s| s.name.starts_with(start)).unwrap();
    let timeout = of("timeout").median();
    let bare = of(BARE);
    let reading = |large| of(large).median().saturating_sub(bare.median()).as_secs_f64();
    let speed = |large| LARGE_BYTES as f64 / 1e6 / reading(large);
    let added = |name: &str| of(name).mean_cpu() - bare.mean_cpu();
    let rows: Vec<(String, f64, f64)> = subjects
        .iter()
        .map(|s| {
            let median = s.median().as_secs_f64();
            (s.name.to_owned(), median * 1e3, median / timeout.as_secs_f64())
        })
        .collect();
    let mut figures = vec![
        ("CPU time that the host adds to the engine, embedded, ms", added(EMBEDDED)),
        ("CPU time that the host adds to the engine, --engine, ms", added(WITH_ENGINE)),
        ("contracts of prose, MB a second", speed(PROSE)),
        ("contracts of short scalars, MB a second", speed(DENSE)),
        ("exchanges a second, one at a time", many.0),
        ("exchanges a second, 32 at a time", many.1),
        ("peak memory of the guard, KiB", peak.0),
        ("peak memory of the inner host, KiB", peak.1),
        ("median lateness of the deadline, ms", late),
        ("size of satyrn-host, KiB", size(HOST_BUILT) as f64 / 1024.0),
        ("size of satyrn-engine, KiB", size(ENGINE_BUILT) as f64 / 1024.0),
    ];
    if let Some(slow) = subjects.iter().find(|s| s.slow) {
        let python = of("Python engine, bare").median();
        let its = slow.median().saturating_sub(python).as_secs_f64();
        let times = its / reading(DENSE);
        figures.push(("contracts of short scalars, times as fast as the Python engine", times));
    }
    if args.iter().any(|arg| arg == "--json") {
        let subjects: Vec<_> = rows
            .iter()
            .map(|(name, ms, ratio)| {
                serde_json::json!({"name": name, "median_ms": ms, "of_timeout": ratio})
            })
            .collect();
        let figures: serde_json::Map<_, _> =
            figures.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        println!("{}", serde_json::json!({"runs": runs, "subjects": subjects, "figures": figures}));
        return;
    }
    println!("| whole process, median of {runs} | ms | of `timeout` |\n|---|---|---|");
    for (name, ms, ratio) in rows {
        println!("| {name} | {ms:.2} | {ratio:.2} |");
    }
    println!("\n| figure | |\n|---|---|");
    for (name, value) in figures {
        println!("| {name} | {value:.1} |");
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[expect(clippy::too_many_lines, reason = "one subject after another")]
fn subjects(dir: &Path, plain: bool) -> Vec<Subject> {
    let copy = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (host, engine) = (&*copy(HOST), &*copy(ENGINE));
    let contract = dir.join("contract.yaml");
    std::fs::write(&contract, "id: demo\ntask: Add a --version flag.\n").unwrap();
    let large = |name: &str, start: &str, unit: &str| {
        let path = dir.join(name);
        let units = LARGE_BYTES.saturating_sub(start.len()) / unit.len();
        std::fs::write(&path, format!("{start}{}", unit.repeat(units))).unwrap();
        path
    };
    let prose = large(
        "prose.yaml",
        "id: demo\ntask: |\n",
        "  Some text of a contract that goes on for a line, as people write it: with `code`, too.\n",
    );
    let dense = large(
        "dense.yaml",
        "id: demo\ntask: |\n  Add a flag.\nsteps:\n",
        "  - name: build it\n    run: [cargo, build, '--release']\n    retries: 3\n",
    );
    let request_for = |name: &str, contract: &Path| {
        let path = dir.join(name);
        let text = serde_json::json!({
            "version": 1, "operation": "check", "repo": dir, "contract": contract
        });
        std::fs::write(&path, text.to_string()).unwrap();
        path
    };
    let request = request_for("request.json", &contract);
    let (prose, dense) = (request_for("prose.json", &prose), request_for("dense.json", &dense));
    let request_arg = request.to_str().unwrap();
    let contract = contract.to_str().unwrap();
    let python_engine = dir.join("engine.py");
    std::fs::write(&python_engine, PYTHON_ENGINE).unwrap();
    let python_engine = python_engine.to_str().unwrap();
    let checkout = dir.join("checkout");
    std::fs::create_dir(&checkout).unwrap();
    std::fs::write(checkout.join("pyproject.toml"), "").unwrap();
    let uv = dir.join("uv");
    std::fs::write(&uv, format!("#!/bin/sh\nexec '{engine}' protocol\n")).unwrap();
    make_executable(&uv);
    let subject = |name, command, stdin: Option<&Path>| Subject {
        name,
        command,
        stdin: stdin.map(Path::to_owned),
        path: None,
        slow: false,
        times: Vec::new(),
        cpu: 0.0,
    };
    let mut all = vec![
        subject(BARE, words(&[engine, "protocol"]), Some(&request)),
        subject(
            "timeout 30 satyrn-engine protocol",
            words(&["timeout", "30", engine, "protocol"]),
            Some(&request),
        ),
        subject(EMBEDDED, words(&[host, "implement", contract]), None),
        subject(WITH_ENGINE, words(&[host, "implement", "--engine", engine, contract]), None),
        Subject {
            path: Some(dir.to_owned()),
            ..subject(
                "satyrn-host --engine-repo, a stub `uv`",
                words(&[host, "implement", "--engine-repo", checkout.to_str().unwrap(), contract]),
                None,
            )
        },
        subject(PROSE, words(&[engine, "protocol"]), Some(&prose)),
        subject(DENSE, words(&[engine, "protocol"]), Some(&dense)),
    ];
    if plain {
        all.push(subject(PLAIN, words(&[&copy(PLAIN_HOST), "implement", contract]), None));
    }
    if works("python3", "-c", "") {
        let python = ["python3", "-c", PYTHON_HOST, request_arg];
        all.push(subject(
            "Python subprocess.run host, satyrn-engine",
            words(&[&python[..], &[engine, "protocol"]].concat()),
            None,
        ));
    }
    let yaml = works("python3", "-c", "import yaml");
    if works("node", "-e", "") {
        let node = ["node", "-e", NODE_HOST];
        all.push(subject(
            "Node child_process host, satyrn-engine",
            words(&[&node[..], &[request_arg, engine, "protocol"]].concat()),
            None,
        ));
        if yaml {
            all.push(subject(
                "Node child_process host, Python engine",
                words(&[&node[..], &[request_arg, "python3", python_engine]].concat()),
                None,
            ));
        }
    }
    if yaml {
        all.push(subject(
            "Python engine, bare",
            words(&["python3", python_engine]),
            Some(&request),
        ));
        if std::env::args().any(|arg| arg == "--slow") {
            all.push(Subject {
                slow: true,
                ..subject(
                    "Python engine, 1 MiB of short scalars",
                    words(&["python3", python_engine]),
                    Some(&dense),
                )
            });
        }
    }
    all
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn make_executable(_: &Path) {}

fn works(program: &str, option: &str, text: &str) -> bool {
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    quiet(Command::new(program).args([option, text])).is_ok_and(|status| status.success())
}

impl Subject {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        match &self.stdin {
            Some(path) => command.stdin(File::open(path).unwrap()),
            None => command.stdin(Stdio::null()),
        };
        if let Some(dir) = &self.path {
            let path = std::env::var_os("PATH").unwrap();
            let dirs = std::iter::once(dir.clone()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(dirs).unwrap());
        }
        command
    }

    fn median(&self) -> Duration {
        median(self.times.clone())
    }

    /// In milliseconds.
    fn mean_cpu(&self) -> f64 {
        self.cpu / self.times.len() as f64
    }
}

/// The time of all children that were waited for, and of theirs, in milliseconds. User and system
/// time together: of a process that ends before the system's first tick, it calls all of it user time.
#[cfg(unix)]
fn cpu_time() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (used.user_time() + used.system_time()).num_microseconds() as f64 / 1e3
}

#[cfg(not(unix))]
fn cpu_time() -> f64 {
    0.0
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn host(dir: &Path) -> Command {
    let mut command = Command::new(dir.join(HOST));
    command.arg("implement").arg(dir.join("contract.yaml"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Exchanges a second, one at a time and 32 at a time, in turn.
fn throughput(dir: &Path, runs: usize) -> (f64, f64) {
    const TURNS: usize = 8;
    let (mut alone, mut together) = (Duration::ZERO, Duration::ZERO);
    let (few, many) = (runs.div_ceil(TURNS), runs.max(64).div_ceil(TURNS) * 4);
    for _ in 0..TURNS {
        let began = Instant::now();
        for _ in 0..few {
            assert!(host(dir).status().unwrap().success());
        }
        alone += began.elapsed();
        let began = Instant::now();
        let mut flying = std::collections::VecDeque::new();
        for started in 0..many {
            flying.push_back(host(dir).spawn().unwrap());
            if started >= 31 {
                assert!(flying.pop_front().unwrap().wait().unwrap().success());
            }
        }
        for mut child in flying {
            assert!(child.wait().unwrap().success());
        }
        together += began.elapsed();
    }
    let rate = |each: usize, took: Duration| (TURNS * each) as f64 / took.as_secs_f64();
    (rate(few, alone), rate(many, together))
}

/// The high-water marks of guard and inner host while an engine runs, in KiB.
fn peak_memory(dir: &Path) -> (f64, f64) {
    let hang = dir.join("hang-for-memory");
    std::fs::write(&hang, "#!/bin/sh\nexec sleep 60\n").unwrap();
    make_executable(&hang);
    let mut command = host(dir);
    command.arg("--engine").arg(&hang).args(["--deadline", "300ms"]);
    let mut child = command.spawn().unwrap();
    let peak = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.split_whitespace().next().unwrap_or("0").parse::<f64>().unwrap_or(0.0)
    };
    let guard = child.id().to_string();
    let mut seen = (0.0_f64, 0.0_f64);
    while child.try_wait().unwrap().is_none() {
        let list = format!("/proc/{guard}/task/{guard}/children");
        let inner = std::fs::read_to_string(list).unwrap_or_default();
        seen = (seen.0.max(peak(&guard)), seen.1.max(peak(inner.trim())));
    }
    seen
}

/// How much later than its deadline a host with an engine that hangs has ended, in milliseconds.
fn lateness(dir: &Path) -> f64 {
    let deadline = Duration::from_millis(100);
    let hang = dir.join("hang");
    std::fs::write(&hang, "#!/bin/sh\nexec sleep 60\n").unwrap();
    make_executable(&hang);
    let late = (0..21).map(|_| {
        let began = Instant::now();
        let mut command = host(dir);
        command.arg("--engine").arg(&hang).args(["--deadline", "100ms"]);
        assert_eq!(command.status().unwrap().code(), Some(124));
        began.elapsed().saturating_sub(deadline)
    });
    median(late.collect()).as_secs_f64() * 1e3
}
