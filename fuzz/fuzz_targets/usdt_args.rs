//! Any text as the argument string of a USDT probe, on both machines.
#![no_main]

use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use uapi::Arch;
use usdt::args::{MAX_ARGS, parse_args};

fuzz_target!(|text: &str| {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let Ok(args) = within(text.len(), 64, || parse_args(arch, text)) else {
            continue;
        };
        assert!(args.len() <= MAX_ARGS);
        for arg in &args {
            assert!(!arg.to_string().contains(char::is_control), "{arg:?}");
            assert!(
                arg.ty.is_readable() || arg.unreadable().is_some(),
                "{arg:?}"
            );
            assert_eq!(
                arg.ty.extend(arg.ty.extend(u64::MAX)),
                arg.ty.extend(u64::MAX),
                "{arg:?}"
            );
            if let Some(reason) = arg.unreadable() {
                assert!(!reason.to_string().is_empty());
            }
        }
        // Reading has no state: the operands one by one are what they were together.
        if let [only] = args.as_slice() {
            let again = parse_args(arch, &format!("  {text} ")).unwrap_or_default();
            assert!(
                text.starts_with(':') || again.as_slice() == std::slice::from_ref(only),
                "{again:?} was {only:?}"
            );
        }
    }
});
