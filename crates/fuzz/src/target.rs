//! Runs targets.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::mutation::Mutator;

/// An input that takes longer is a finding as well.
const SLOW: Duration = Duration::from_secs(20);
/// The time for shortening a finding.
const SHORTENING: Duration = Duration::from_secs(20);

/// A reader under test.
#[derive(Debug)]
pub struct Target {
    /// The name, also of its folder in `findings/`.
    pub name: &'static str,
    /// Sound inputs, to be changed.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the input's language.
    pub tokens: &'static [&'static str],
    /// Dependencies that panic on some inputs, which the code under test turns into errors.
    pub caught: &'static [&'static str],
    /// Panics if something does not hold for an input.
    pub check: fn(&[u8]),
}

/// How long and how to fuzz.
#[derive(Debug, Clone)]
pub struct Fuzzing {
    /// For how long.
    pub time: Duration,
    /// The number that all randomness comes from.
    pub seed: u64,
    /// The file for the input that is being checked: if the process dies, it has the finding.
    pub current: PathBuf,
}

impl Target {
    /// Checks the seeds, and the inputs that once were findings.
    pub fn replay(&self) {
        for seed in (self.seeds)() {
            self.expect_sound(&seed, "a seed");
        }
        for (path, input) in self.findings() {
            self.expect_sound(&input, &path.display().to_string());
        }
    }

    /// Checks changed seeds. The first finding is shortened, stored in `findings/`, and ends it with a panic.
    ///
    /// Returns the number of inputs.
    pub fn fuzz(&self, fuzzing: &Fuzzing) -> u64 {
        let mut seeds = (self.seeds)();
        seeds.extend(self.findings().into_iter().map(|(_, input)| input));
        let mut mutator = Mutator::new(&seeds, self.tokens, fuzzing.seed);
        let began = Instant::now();
        let mut inputs = 0;
        while began.elapsed() < fuzzing.time {
            let input = mutator.next();
            fs::write(&fuzzing.current, &input).unwrap();
            if let Err(failure) = self.run(&input) {
                let short = self.shortened(input);
                let path = self.store(&short);
                let shown = short[..short.len().min(4_096)].escape_ascii();
                panic!("{}: {failure}\ninput: {}\n{shown}", self.name, path.display());
            }
            inputs += 1;
        }
        inputs
    }

    fn expect_sound(&self, input: &[u8], what: &str) {
        if let Err(failure) = self.run(input) {
            panic!("{}, {what}: {failure}", self.name);
        }
    }

    /// Checks one input. Returns the messages of panics on any thread.
    fn run(&self, input: &[u8]) -> Result<(), String> {
        watch_panics();
        let began = Instant::now();
        RUNNING.store(true, Ordering::SeqCst);
        let checked = panic::catch_unwind(AssertUnwindSafe(|| (self.check)(input)));
        RUNNING.store(false, Ordering::SeqCst);
        let mut panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
        if checked.is_ok() {
            panics.retain(|panic| !self.caught.iter().any(|name| panic.contains(&format!("/{name}-"))));
        }
        if checked.is_err() || !panics.is_empty() {
            return Err(panics.join("\n"));
        }
        match began.elapsed() {
            time if time > SLOW => Err(format!("takes {time:?}")),
            _ => Ok(()),
        }
    }

    /// A part of `input` that fails as well.
    fn shortened(&self, mut input: Vec<u8>) -> Vec<u8> {
        let began = Instant::now();
        let mut piece = input.len() / 2;
        while piece > 0 {
            let mut at = 0;
            while at < input.len() && began.elapsed() < SHORTENING {
                let mut shorter = input.clone();
                shorter.drain(at..(at + piece).min(input.len()));
                if self.run(&shorter).is_err() { input = shorter } else { at += piece }
            }
            piece /= 2;
        }
        input
    }

    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("findings").join(self.name)
    }

    fn findings(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(self.folder()) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    fn store(&self, input: &[u8]) -> PathBuf {
        let digest = blake3::hash(input).to_hex();
        let path = self.folder().join(&digest[..16]);
        fs::create_dir_all(self.folder()).unwrap();
        fs::write(&path, input).unwrap();
        path
    }
}

/// Whether a target runs.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// The messages of panics while a target ran.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects the messages of panics: not all of them end the thread that runs the target.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RUNNING.load(Ordering::SeqCst) {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string())
            } else {
                before(info)
            }
        }));
    });
}
