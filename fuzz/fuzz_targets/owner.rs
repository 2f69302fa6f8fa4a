//! Any text as an owner's description.
#![no_main]

use libfuzzer_sys::fuzz_target;
use objects::OwnerProperties;

fuzz_target!(|text: &str| {
    let owner = OwnerProperties::parse(text);
    assert_eq!(
        owner.iter().next(),
        Some(("description", text)),
        "the whole is always there"
    );
    for (i, (name, value)) in owner.iter().enumerate() {
        assert!(OwnerProperties::NAMES.contains(&name));
        assert_eq!(owner.get(name), Some(value), "{name} is told once");
        assert!(
            text.contains(value)
                && (i == 0 || name == "bdev" || name == "name" || !value.contains(' '))
        );
        assert!(!value.is_empty() || text.is_empty() || name == "bdev");
    }
});
