//! The kernel's own symbols, from `/proc/kallsyms`.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// The kernel's list of its symbols. Without the right to see them (`kptr_restrict`) all addresses
/// are 0.
const KALLSYMS: &str = "/proc/kallsyms";

/// Prefixes of code symbols that are not functions: padding before functions, static calls, checks
/// of control flow.
const NO_FUNCTIONS: [&str; 3] = ["__pfx_", "__SCT__", "__cfi_"];

/// All symbols of the kernel and its modules, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    text: String,
    /// Address, and the offsets in the text where its name begins and ends.
    symbols: Vec<(u64, u32, u32)>,
}

impl KernelSymbols {
    /// Reads the symbols: some 200,000 lines.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(crate::proc::text(KALLSYMS)?))
    }

    /// Returns the symbols that begin at these addresses, reading line by line, so that little is
    /// kept. Of several names, it is the first that the kernel lists.
    pub fn names_of(addresses: &BTreeSet<u64>) -> io::Result<HashMap<u64, String>> {
        let mut names = HashMap::new();
        let mut lines = BufReader::new(File::open(KALLSYMS)?);
        let mut line = Vec::new();
        while names.len() < addresses.len() {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let mut words = text.split_ascii_whitespace();
            let address = words
                .next()
                .and_then(|word| u64::from_str_radix(word, 16).ok());
            let name = words
                .nth(1)
                .filter(|name| !NO_FUNCTIONS.iter().any(|prefix| name.starts_with(prefix)));
            if let (Some(address), Some(name)) = (address.filter(|it| addresses.contains(it)), name)
            {
                names.entry(address).or_insert_with(|| name.to_owned());
            }
        }
        Ok(names)
    }

    /// Returns the functions around these addresses, each with its module in brackets if it is not
    /// the kernel's own. It reads line by line, so that little is kept. Of several names, it is the
    /// last that the kernel lists. Addresses in no function are left out.
    pub fn code_of(addresses: &BTreeSet<u64>) -> io::Result<HashMap<u64, String>> {
        code_of_lines(BufReader::new(File::open(KALLSYMS)?), addresses)
    }

    /// Parses the text: a line is address, kind, name, and a module in brackets (`s_show` in `kernel/kallsyms.c`).
    pub fn parse(text: String) -> Self {
        let mut symbols = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let mut words = line.split_ascii_whitespace();
            if let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next())
                && let Ok(address) = u64::from_str_radix(address, 16)
            {
                let at = start + (name.as_ptr() as usize - line.as_ptr() as usize);
                symbols.push((address, at as u32, (at + name.len()) as u32));
            }
            start += line.len();
        }
        symbols.sort_by_key(|symbol| symbol.0);
        Self { text, symbols }
    }

    /// Returns the symbol around an address, and the offset from its beginning.
    pub fn at(&self, address: u64) -> Option<(&str, u64)> {
        let above = self.symbols.partition_point(|symbol| symbol.0 <= address);
        let (start, ..) = *self.symbols[..above]
            .last()
            .filter(|symbol| symbol.0 != 0)?;
        // Of several names of an address, it is the first that the kernel lists.
        let first = self.symbols.partition_point(|symbol| symbol.0 < start);
        let (_, from, to) = self.symbols[first];
        Some((&self.text[from as usize..to as usize], address - start))
    }

    /// Returns the address of a symbol.
    pub fn address(&self, name: &str) -> Option<u64> {
        let of =
            |symbol: &&(u64, u32, u32)| &self.text[symbol.1 as usize..symbol.2 as usize] == name;
        self.symbols
            .iter()
            .find(of)
            .map(|symbol| symbol.0)
            .filter(|&address| address != 0)
    }

    /// Returns all functions, in order of address, each with its module if it is not the kernel's
    /// own.
    pub fn functions(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.symbols.iter().filter_map(|&(_, from, to)| {
            let (from, to) = (from as usize, to as usize);
            let name = &self.text[from..to];
            let is_function =
                self.is_code(from) && !NO_FUNCTIONS.iter().any(|prefix| name.starts_with(prefix));
            is_function.then(|| (name, self.module(to)))
        })
    }

    /// Returns the code symbol around an address, the offset from its beginning, and its module if
    /// it is not the kernel's own. Of several names of an address, it is the last that the kernel
    /// lists.
    pub fn code_at(&self, address: u64) -> Option<(&str, u64, Option<&str>)> {
        let above = self.symbols.partition_point(|symbol| symbol.0 <= address);
        let is_shown = |symbol: &&(u64, u32, u32)| symbol.0 != 0 && self.is_code(symbol.1 as usize);
        let (start, from, to) = *self.symbols[..above].iter().rev().find(is_shown)?;
        Some((
            &self.text[from as usize..to as usize],
            address - start,
            self.module(to as usize),
        ))
    }

    /// Returns true if the symbol whose name begins here is code: its kind, which comes before the
    /// name, is one of nm(1)'s.
    fn is_code(&self, from: usize) -> bool {
        let kind = from
            .checked_sub(2)
            .and_then(|at| self.text.as_bytes().get(at));
        kind.is_some_and(|kind| b"tTwW".contains(kind))
    }

    /// Returns the module of the symbol whose name ends here.
    fn module(&self, to: usize) -> Option<&str> {
        let rest = self.text[to..].lines().next().unwrap_or_default();
        rest.trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
    }
}

/// Implements [`KernelSymbols::code_of`]. The lines are mostly in order: a function ends where the
/// next one begins. If the next line is out of order, all addresses behind a function may be in it.
fn code_of_lines(
    mut lines: impl BufRead,
    addresses: &BTreeSet<u64>,
) -> io::Result<HashMap<u64, String>> {
    let mut found: HashMap<u64, (u64, String)> = HashMap::new();
    let (mut line, mut last) = (Vec::new(), (0, String::new()));
    loop {
        line.clear();
        let is_end = lines.read_until(b'\n', &mut line)? == 0;
        let text = String::from_utf8_lossy(&line);
        let mut words = text.split_ascii_whitespace();
        let address = words
            .next()
            .and_then(|word| u64::from_str_radix(word, 16).ok());
        let kind = words
            .next()
            .filter(|kind| ["t", "T", "w", "W"].contains(kind));
        let next = match (address.filter(|address| *address != 0), kind, words.next()) {
            (Some(address), Some(_), Some(name)) => Some((address, name)),
            _ => None,
        };
        if next.is_none() && !is_end {
            continue;
        }
        let end = next.map_or(u64::MAX, |(address, _)| address);
        let end = if end < last.0 { u64::MAX } else { end };
        for &address in addresses.range(last.0..end).filter(|_| last.0 != 0) {
            if found
                .get(&address)
                .is_none_or(|(begin, _)| *begin <= last.0)
            {
                found.insert(address, last.clone());
            }
        }
        let Some((address, name)) = next else { break };
        last.0 = address;
        last.1.clear();
        last.1.push_str(name);
        if let Some(module) = words.next() {
            last.1.extend([" ", module]);
        }
    }
    Ok(found
        .into_iter()
        .map(|(address, (_, name))| (address, name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_by_address_and_name() {
        let text = "ffffffff81000010 T second\nffffffff81000000 T first\nffffffff81000000 t also\nffffffff81000020 t __pfx_x\nffffffffc0000000 t own\t[mod]\n";
        let symbols = KernelSymbols::parse(text.into());
        assert_eq!(symbols.at(0xffff_ffff_8100_0014), Some(("second", 4)));
        assert_eq!(symbols.at(0xffff_ffff_8100_0001), Some(("first", 1)));
        assert_eq!(symbols.at(0xffff_ffff_c000_0000), Some(("own", 0)));
        assert_eq!(symbols.at(1), None);
        assert_eq!(symbols.address("also"), Some(0xffff_ffff_8100_0000));
        assert_eq!(symbols.address("none"), None);
        let all: Vec<_> = symbols.functions().collect();
        assert_eq!(
            symbols.code_at(0xffff_ffff_8100_0001),
            Some(("also", 1, None))
        );
        assert_eq!(
            symbols.code_at(0xffff_ffff_c000_0008),
            Some(("own", 8, Some("mod")))
        );
        assert_eq!(symbols.code_at(1), None);
        let wanted = [
            0xffff_ffff_8100_0001,
            0xffff_ffff_8100_0014,
            0xffff_ffff_c000_0008,
            1,
        ]
        .into();
        let read = code_of_lines(text.as_bytes(), &wanted).unwrap();
        let name = |address: u64| read.get(&address).map(String::as_str);
        assert_eq!(name(0xffff_ffff_8100_0014), Some("second"));
        assert_eq!(
            (name(0xffff_ffff_8100_0001), name(0xffff_ffff_c000_0008)),
            (Some("also"), Some("own [mod]"))
        );
        assert_eq!((name(1), read.len()), (None, 3));
        assert_eq!(
            all,
            [
                ("first", None),
                ("also", None),
                ("second", None),
                ("own", Some("mod"))
            ]
        );
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let symbols =
            KernelSymbols::parse("0000000000000000 T a\n0000000000000000 T b\nnonsense\n".into());
        assert_eq!((symbols.at(7), symbols.address("a")), (None, None));
    }
}
