//! The helper table against the machine's own `linux/bpf.h`.

use bpf_insn::Helper;

const HEADER: &str = "/usr/include/linux/bpf.h";

/// Returns the numbers and names of `enum bpf_func_id`, from the macro that lists them: `FN(name)`
/// in older headers, where the position is the number, `FN(name, number, ...)` since Linux 6.2.
fn listed(header: &str) -> Vec<(u32, String)> {
    let mapper = header
        .lines()
        .skip_while(|line| !line.contains("define __") || !line.contains("BPF_FUNC_MAPPER(FN"));
    let mut next = 0;
    let mut all = Vec::new();
    for line in mapper
        .skip(1)
        .take_while(|line| line.trim_end().ends_with('\\'))
    {
        let Some(inner) = line
            .trim()
            .strip_prefix("FN(")
            .and_then(|rest| rest.split(')').next())
        else {
            continue;
        };
        let fields: Vec<&str> = inner.split(',').map(str::trim).collect();
        let number = fields
            .get(1)
            .and_then(|field| field.parse().ok())
            .unwrap_or(next);
        all.push((number, fields[0].to_owned()));
        next = number + 1;
    }
    all
}

#[test]
fn numbers_and_names_are_the_headers() {
    let Ok(header) = std::fs::read_to_string(HEADER) else {
        testkit::kernel::skip_if_permitted("header", &format!("no {HEADER} here"));
        return;
    };
    let listed = listed(&header);
    assert!(
        listed.len() > 150,
        "only {} helpers found in {HEADER}",
        listed.len()
    );
    for (number, name) in listed.into_iter().filter(|(number, _)| *number != 0) {
        assert_eq!(Helper::by_name(&name), Some(Helper(number)), "{name}");
    }
}

#[test]
fn both_forms_of_the_header_are_read() {
    let old = "#define __BPF_FUNC_MAPPER(FN)\t\\\n\tFN(unspec),\t\\\n\tFN(map_lookup_elem),\t\\\n\t/* */\n";
    let new = "#define ___BPF_FUNC_MAPPER(FN, ctx...)\t\\\n\tFN(unspec, 0, ##ctx)\t\\\n\tFN(loop, 181, ##ctx)\t\\\n\t/* */\n";
    assert_eq!(
        listed(old),
        [(0, "unspec".to_owned()), (1, "map_lookup_elem".to_owned())]
    );
    assert_eq!(
        listed(new),
        [(0, "unspec".to_owned()), (181, "loop".to_owned())]
    );
}
