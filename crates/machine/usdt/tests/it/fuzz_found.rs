//! Findings of the fuzz targets, as small as they can be reported.

use elf::symbols::demangle;
use uapi::Arch;
use usdt::args::parse_args;

/// Blanks after a bracket that is never closed were kept where the argument had no size.
#[test]
fn an_arguments_text_ends_with_no_blank() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let args = parse_args(arch, "8(%rax ").expect("one argument");
        assert_eq!(
            args.iter().map(|arg| &*arg.text).collect::<Vec<_>>(),
            ["8(%rax"]
        );
    }
}

/// Each further pair doubled the time, up to the depth at which the name was refused; else it would
/// be minutes.
#[test]
fn a_name_that_has_many_meanings_is_refused_soon() {
    for levels in [12, 16, 18, 40, 200] {
        let name = format!("_Z1fOOwwT_T_ZeO{}", "IIC1".repeat(levels));
        assert_eq!(demangle(&name), None, "{levels}");
    }
}
