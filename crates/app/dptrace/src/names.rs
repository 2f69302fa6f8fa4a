//! "Did you mean": the names nearest to one that does not exist.

/// At most `most` of the `known` names that are near to `wanted`, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let plain = wanted.replace(['*', '?'], "").to_lowercase();
    let mut scored: Vec<_> = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&plain, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

/// `; near: A, B` or nothing.
pub(crate) fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(wanted, known, 4);
    if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_slip_is_found() {
        let known = ["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "RDMA_REQ_NEW", "SOCK_REQ_QUEUE"];
        assert_eq!(super::nearest("tcp_req_nwe", known, 1), ["TCP_REQ_NEW"]);
        assert_eq!(super::hint("zzzz", known), "");
    }
}
