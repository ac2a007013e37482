//! Changes seeds at random.

use amplifier_session_testkit::Random;

/// Inputs do not grow beyond this.
const LONGEST: usize = 64 << 10;
/// Numbers at which code tends to change its mind.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "65536",
    "2147483648",
    "4294967295",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615",
    "1e309",
    "0.1",
    "-0.0",
];

/// Makes inputs from seeds.
#[derive(Debug)]
pub(crate) struct Mutator<'a> {
    random: Random,
    seeds: &'a [Vec<u8>],
    tokens: &'a [&'a str],
    last: Vec<u8>,
}

impl<'a> Mutator<'a> {
    /// `tokens` are words of the input's language. There must be a seed.
    pub(crate) fn new(seeds: &'a [Vec<u8>], tokens: &'a [&'a str], seed: u64) -> Self {
        Self { random: Random(seed), seeds, tokens, last: Vec::new() }
    }

    /// The next input: a seed, or the input before, with a few changes.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let goes_on = self.random.below(4) == 0 && !self.last.is_empty();
        let mut input = if goes_on { self.last.clone() } else { self.random.one(self.seeds).clone() };
        // Mostly one to four changes, sometimes many.
        let most = if self.random.below(8) == 0 { 8 } else { 3 };
        let changes = 1 << self.random.below(most);
        for _ in 0..changes {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        self.last.clone_from(&input);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        let range = at..(at + self.short()).min(input.len());
        match self.random.below(12) {
            0 | 1 => self.at_byte(input, at, |byte, random| byte ^ (1 << random.below(8))),
            2 => self.at_byte(input, at, |_, random| random.bits() as u8),
            3 => self
                .at_byte(input, at, |_, random| *random.one(b"\0\n\r\t\"\\{}[],:?#%/~ \x7f\x80\xc3\xed\xff")),
            4 => drop(input.drain(range)),
            5 => {
                let copy = input[range].to_vec();
                let to = self.random.below(input.len() + 1);
                let times = 1 << self.random.below(4);
                insert(input, to, &copy.repeat(times));
            }
            6 => {
                let bytes: Vec<u8> = (0..self.short()).map(|_| self.random.bits() as u8).collect();
                insert(input, at, &bytes);
            }
            7 => {
                let other = self.random.one(self.seeds);
                let start = self.random.below(other.len() + 1);
                let end = (start + self.random.below(other.len() + 1)).min(other.len());
                insert(input, at, &other[start..end]);
            }
            8 => {
                let token = if self.tokens.is_empty() { "\n" } else { self.random.one(self.tokens) };
                insert(input, at, token.as_bytes());
            }
            9 => self.number(input, at),
            10 => input.truncate(at),
            // A number of four bytes, as binary formats have them.
            _ => {
                let number = [0, 1, 0x7f, 0xffff, 0x7fff_ffff, u32::MAX][self.random.below(6)];
                for (byte, new) in input.iter_mut().skip(at).zip(u32::to_le_bytes(number)) {
                    *byte = new;
                }
            }
        }
    }

    fn at_byte(&mut self, input: &mut [u8], at: usize, change: impl FnOnce(u8, &mut Random) -> u8) {
        if let Some(byte) = input.get_mut(at) {
            *byte = change(*byte, &mut self.random);
        }
    }

    /// Puts another number in the place of the next one after `at`.
    fn number(&mut self, input: &mut Vec<u8>, at: usize) {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let Some(start) = input[at..].iter().position(is_digit).map(|found| at + found) else { return };
        let end = input[start..].iter().position(|byte| !is_digit(byte)).map_or(input.len(), |n| start + n);
        let number = self.random.one(&NUMBERS);
        input.splice(start..end, number.bytes());
    }

    /// A length: mostly short.
    fn short(&mut self) -> usize {
        let most = 1 << self.random.below(8);
        1 + self.random.below(most)
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if input.len() + bytes.len() <= LONGEST {
        input.splice(at..at, bytes.iter().copied());
    }
}
