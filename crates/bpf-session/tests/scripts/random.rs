//! Random scripts that the compiler accepts: the verifier must take all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bpf_session::{Features, Session, SessionError};

use crate::facts::Facts;
use crate::{allowed, compile};

/// How many are tried, where not said otherwise. Each takes some milliseconds of the verifier's time.
const SCRIPTS: u64 = 2000;
/// Says how many instead.
const VARIABLE: &str = "DPTRACE_TEST_SCRIPTS";

#[test]
fn the_verifier_takes_what_the_compiler_accepts() {
    let Some(_alone) = allowed() else { return };
    let features = Features::detect().unwrap();
    let count = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(SCRIPTS);
    let (mut accepted, mut too_old) = (0, BTreeSet::new());
    for seed in 0..count {
        let source = Generator::new(seed).script();
        // What the compiler refuses is no matter here: most is valid, and that most is, is looked at below.
        let Ok(script) = compile(&source, &Facts::default()) else { continue };
        accepted += 1;
        match Session::load(&script.module, features) {
            Ok(_) => {}
            Err(error @ SessionError::TooOld { .. }) => {
                too_old.insert(error.to_string().split(", which").next().unwrap_or_default().to_owned());
            }
            Err(error) => panic!("seed {seed}:\n{source}\n{error}"),
        }
    }
    for lack in &too_old {
        println!("REFUSED: {lack}");
    }
    assert!(accepted * 10 >= count * 9, "only {accepted} of {count} were accepted");
}

/// Makes scripts. Types are kept apart by names: `$iN` and `@iN` are integers, `$sN` and `@sN` strings, `@cN` counts.
struct Generator {
    state: u64,
    /// How many integer and string variables are known at this place.
    integers: u32,
    strings: u32,
    depth: u32,
    in_loop: bool,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, integers: 0, strings: 0, depth: 0, in_loop: false }
    }

    /// A number below `limit` (xorshift64).
    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % limit
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    fn script(&mut self) -> String {
        // A map that is nowhere filled is a mistake.
        let mut text = "begin { @i0[1] = 1; @i1[1] = 1; @i2[1] = 1; }\n".to_owned();
        for probe in ["begin", "interval:s:1", "profile:hz:99", "end"] {
            if probe == "begin" || self.below(3) == 0 {
                (self.integers, self.strings) = (0, 0);
                let body = self.block();
                writeln!(text, "{probe} {body}").unwrap();
            }
        }
        text
    }

    fn block(&mut self) -> String {
        let (integers, strings) = (self.integers, self.strings);
        self.depth += 1;
        let mut text = "{ ".to_owned();
        for _ in 0..=self.below(if self.depth > 2 { 2 } else { 5 }) {
            text += &self.statement();
            text.push(' ');
        }
        self.depth -= 1;
        (self.integers, self.strings) = (integers, strings);
        text + "}"
    }

    fn statement(&mut self) -> String {
        let deep = self.depth > 3;
        match self.below(if deep { 9 } else { 14 }) {
            0 | 1 => {
                let value = self.integer(2);
                self.integers += 1;
                format!("let $i{}_{} = {value};", self.depth, self.integers)
            }
            2 => {
                let value = self.string();
                self.strings += 1;
                format!("let $s{}_{} = {value};", self.depth, self.strings)
            }
            3 => format!("@i{}[{}] = {};", self.below(3), self.integer(1), self.integer(2)),
            4 => format!("@s{}[{}, {}] = {};", self.below(2), self.integer(1), self.string(), self.string()),
            5 => {
                let aggregation =
                    self.pick(&["count()", "sum(N)", "min(N)", "max(N)", "avg(N)", "stats(N)", "hist(N)"]);
                let name = aggregation.split('(').next().unwrap();
                format!("@{name}[{}] = {};", self.string(), aggregation.replace('N', &self.integer(2)))
            }
            6 => format!("printf(\"%d %s %x\\n\", {}, {}, {});", self.integer(2), self.string(), self.integer(1)),
            7 => format!("print(({}, {}));", self.integer(2), self.string()),
            8 => format!("@t = (({}), {});", self.integer(1), self.string()),
            9 => format!("if ({}) {} else {}", self.condition(), self.block(), self.block()),
            10 => {
                let outer = std::mem::replace(&mut self.in_loop, true);
                let body = self.block();
                self.in_loop = outer;
                let turns = 1 + self.below(20);
                format!("for ($n{} : 0..{turns}) {body}", self.depth)
            }
            11 => {
                let counter = format!("$w{}", self.depth);
                let body = self.block();
                format!("{counter} = 0; while ({counter} < {}) {{ {counter}++; {body} }}", 1 + self.below(30))
            }
            12 => format!("unroll ({}) {}", 1 + self.below(4), self.block()),
            _ if self.in_loop => format!("if ({}) {{ {} }}", self.condition(), self.pick(&["break;", "continue;"])),
            _ => format!("if ({}) {{ return; }}", self.condition()),
        }
    }

    fn condition(&mut self) -> String {
        match self.below(4) {
            0 => format!("{} == {}", self.string(), self.string()),
            1 => format!("{} && {}", self.integer(1), self.integer(1)),
            _ => format!("{} {} {}", self.integer(1), self.pick(&["<", ">", "<=", ">=", "==", "!="]), self.integer(1)),
        }
    }

    fn integer(&mut self, deep: u32) -> String {
        if deep > 0 && self.below(3) == 0 {
            let (left, right) = (self.integer(deep - 1), self.integer(deep - 1));
            return match self.below(10) {
                0 => format!("({left} ? {right} : 7)"),
                1 => format!("(int32)({left})"),
                2 => format!("(uint8)({right})"),
                3 => format!("(~({left}))"),
                4 => format!("(({left}) / 3)"),
                _ => format!("({left} {} {right})", self.pick(&["+", "-", "*", "&", "|", "^", "<<", ">>"])),
            };
        }
        match self.below(8) {
            0 => "nsecs".into(),
            1 => "pid".into(),
            2 => "(uint64)cpu".into(),
            3 => format!("@i{}[{}]", self.below(3), self.below(5)),
            _ => self.below(1 << 20).to_string(),
        }
    }

    fn string(&mut self) -> String {
        match self.below(4) {
            0 => "comm".into(),
            1 => format!("str({}, 16)", self.pick(&["0", "pid", "nsecs"])),
            _ => format!("\"{}\"", self.pick(&["", "a", "some words", "a longer string than a comm is"])),
        }
    }
}
