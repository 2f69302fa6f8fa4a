//! Names of C++ and Rust functions, as their authors wrote them.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Limit on a demangled name, in bytes. Mangled names refer back to their own parts, so that a
/// short one can mean an endless one.
const MAX_DEMANGLED: usize = 64 * 1024;
/// Limit on the nesting of a mangled C++ name. The crate tries one meaning after the other, so that
/// its time and memory can double with every few levels: at a depth of 128, a name of 80 bytes took
/// 0.1 s and as many megabytes. Of the 29,055 C++ names of LLVM 14's library 3 are deeper than 64,
/// of the 4,425 of libstdc++ none.
const MAX_DEPTH: u32 = 64;

/// Demangles a name; `None` if it is not mangled, or broken, or too long to be shown.
///
/// Rust names (both manglings) lose their hash, as `rustfilt` does; C++ names keep their parameters.
pub fn demangle(name: &str) -> Option<String> {
    // `_Z` is C++ and old Rust (Itanium C++ ABI, 5.1.1), `_R` is Rust (RFC 2603); Mach-O and Windows forms don't occur.
    if !(name.starts_with("_Z") || name.starts_with("_R")) {
        return None;
    }
    let mut text = BoundedText {
        text: String::new(),
    };
    let rust = rustc_demangle::try_demangle(name).ok();
    let written = match rust {
        Some(rust) => write!(text, "{rust:#}"),
        None => cpp(name, &mut text),
    };
    written.ok().map(|()| text.text)
}

fn cpp(name: &str, text: &mut BoundedText) -> fmt::Result {
    let options = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let (symbol, tail) =
        BorrowedSymbol::with_tail_and_options(name.as_bytes(), &options).map_err(|_| fmt::Error)?;
    symbol.structured_demangle(text, &DemangleOptions::new().recursion_limit(MAX_DEPTH))?;
    // A version of the symbol is kept (`@@GLIBCXX_3.4`); any other rest means that the name was not understood.
    let version = std::str::from_utf8(tail).map_err(|_| fmt::Error)?;
    if version.is_empty() || version.starts_with('@') {
        text.write_str(version)
    } else {
        Err(fmt::Error)
    }
}

/// Text that refuses to grow beyond [`MAX_DEMANGLED`].
struct BoundedText {
    text: String,
}

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len().saturating_add(piece.len()) > MAX_DEMANGLED {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_mangling() {
        let check =
            |name, wanted: Option<&str>| assert_eq!(demangle(name).as_deref(), wanted, "{name}");
        check("main", None);
        check("_ZN3foo3barEv@@V1", Some("foo::bar()@@V1"));
        check("_Z3foov-rest", None);
        check("_Z", None);
        check(
            "_ZN4spdk4bdev4openEPKci",
            Some("spdk::bdev::open(char const*, int)"),
        );
        check("_ZN3foo3barEv.cold", Some("foo::bar() [clone .cold]"));
        check(
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            Some("core::fmt::Write::write_fmt"),
        );
        check("_RNvC6_123foo3bar", Some("123foo::bar"));
        check(
            "_ZNSt6vectorIiSaIiEE9push_backEOi",
            Some("std::vector<int, std::allocator<int> >::push_back(int&&)"),
        );
    }

    #[test]
    fn a_name_that_explodes_is_refused() {
        // `S_` is std::pair, and each `S0_`, `S1_`, ... a pair of the one before: the text doubles every time.
        let mut name = String::from("_Z1fSt4pairIiiE");
        for level in 0..36 {
            let before = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            write!(name, "S_IS{before}_S{before}_E").unwrap();
        }
        assert_eq!(demangle(&name), None);
    }
}
