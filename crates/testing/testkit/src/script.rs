//! Scripts in bpftrace's language, generated at random or by choice, for tests of their compilers.

/// Generator of scripts. Names separate the types: `$iN` and `@iN` are integers, `$sN` and `@sN`
/// strings, `@cN` counts.
pub struct Generator<'a> {
    /// Source of choices: a number below the argument.
    choose: Box<dyn FnMut(u64) -> u64 + 'a>,
    /// Probes besides `begin`.
    probes: &'a [&'a str],
    /// Additional statements.
    statements: &'a [&'a str],
    /// Number of integer variables defined so far.
    integers: u32,
    /// Number of string variables defined so far.
    strings: u32,
    depth: u32,
    in_loop: bool,
    /// True in a probe of user code, whose arguments are addresses of strings.
    in_user: bool,
}

impl<'a> Generator<'a> {
    /// Creates a generator from a source of choices.
    pub fn new(choose: impl FnMut(u64) -> u64 + 'a) -> Self {
        let probes = &["interval:s:1", "profile:hz:99", "end"];
        Self {
            choose: Box::new(choose),
            probes,
            statements: &[],
            integers: 0,
            strings: 0,
            depth: 0,
            in_loop: false,
            in_user: false,
        }
    }

    /// Creates a generator that returns the same scripts for the same seed (xorshift64).
    pub fn random(seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self::new(move |limit| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        })
    }

    /// Adds probes and statements.
    #[must_use]
    pub fn with(self, probes: &'a [&'a str], statements: &'a [&'a str]) -> Self {
        Self {
            probes,
            statements,
            ..self
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.choose)(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len() as u64) as usize]
    }

    /// Generates the next script.
    pub fn script(&mut self) -> String {
        // A map that is never filled is an error.
        let mut text = "begin { @i0[1] = 1; @i1[1] = 1; @i2[1] = 1; }\n".to_owned();
        // Strings in keys and variables take scratch memory, which is limited: shorter strings let
        // more scripts fit.
        if self.below(4) != 0 {
            text.insert_str(0, "config = { max_strlen = 200 }\n");
        }
        for probe in std::iter::once("begin").chain(self.probes.iter().copied()) {
            if probe == "begin" || self.below(3) == 0 {
                (self.integers, self.strings) = (0, 0);
                self.in_user = probe.starts_with('u');
                let body = self.block();
                text.extend([probe, " ", &body, "\n"]);
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
        if !self.statements.is_empty() && self.below(3) == 0 {
            return self.pick(self.statements).to_owned();
        }
        match self.below(if deep { 9 } else { 15 }) {
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
            3 => format!(
                "@i{}[{}] = {};",
                self.below(3),
                self.integer(1),
                self.integer(2)
            ),
            4 => format!(
                "@s{}[{}, {}] = {};",
                self.below(2),
                self.integer(1),
                self.string(),
                self.string()
            ),
            5 => {
                let aggregation = self.pick(&[
                    "count()", "sum(N)", "min(N)", "max(N)", "avg(N)", "stats(N)", "hist(N)",
                ]);
                let name = aggregation.split('(').next().unwrap_or_default();
                format!(
                    "@{name}[{}] = {};",
                    self.string(),
                    aggregation.replace('N', &self.integer(2))
                )
            }
            6 => format!(
                "printf(\"%d %s %x\\n\", {}, {}, {});",
                self.integer(2),
                self.string(),
                self.integer(1)
            ),
            7 => format!("print(({}, {}));", self.integer(2), self.string()),
            8 => format!("@t = (({}), {});", self.integer(1), self.string()),
            choice => self.nested(choice),
        }
    }

    /// Generates a statement with blocks of its own, or one that leaves its block.
    fn nested(&mut self, choice: u64) -> String {
        match choice {
            9 => format!(
                "if ({}) {} else {}",
                self.condition(),
                self.block(),
                self.block()
            ),
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
                format!(
                    "{counter} = 0; while ({counter} < {}) {{ {counter}++; {body} }}",
                    1 + self.below(30)
                )
            }
            13 => {
                let outer = std::mem::replace(&mut self.in_loop, true);
                let body = self.block();
                self.in_loop = outer;
                let map = self.below(3);
                format!("for ($kv{} : @i{map}) {body}", self.depth)
            }
            12 => format!("unroll ({}) {}", 1 + self.below(4), self.block()),
            _ if self.in_loop => format!(
                "if ({}) {{ {} }}",
                self.condition(),
                self.pick(&["break;", "continue;"])
            ),
            _ => format!("if ({}) {{ return; }}", self.condition()),
        }
    }

    fn condition(&mut self) -> String {
        match self.below(4) {
            0 => format!("{} == {}", self.string(), self.string()),
            1 => format!("{} && {}", self.integer(1), self.integer(1)),
            _ => format!(
                "{} {} {}",
                self.integer(1),
                self.pick(&["<", ">", "<=", ">=", "==", "!="]),
                self.integer(1)
            ),
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
                5 => format!("(({left}) {} ({right}))", self.pick(&["/", "%"])),
                _ => format!(
                    "({left} {} {right})",
                    self.pick(&["+", "-", "*", "&", "|", "^", "<<", ">>"])
                ),
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
        if self.in_user && self.below(3) == 0 {
            let address = self.pick(&["(uint8 *)reg(\"ip\")", "reg(\"ip\")", "pid"]);
            return match self.below(3) {
                0 => format!("str({address})"),
                1 => format!("str({address}, 5000)"),
                _ => format!("str({address}, {})", self.integer(1)),
            };
        }
        match self.below(4) {
            0 => "comm".into(),
            1 => format!("str({}, 16)", self.pick(&["0", "pid", "nsecs"])),
            _ => format!(
                "\"{}\"",
                self.pick(&["", "a", "some words", "a longer string than a comm is"])
            ),
        }
    }
}
