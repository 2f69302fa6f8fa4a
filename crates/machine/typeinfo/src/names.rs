//! Finds the nearest known names, for errors about unknown ones.

/// Limit on the length of compared names: nobody mistypes longer ones.
const MAX_COMPARED: usize = 128;

/// Returns the edit distance up to which a known name is a likely meaning of `wanted`.
fn allowed(wanted: &str) -> usize {
    (wanted.len() / 3).max(1)
}

/// Collector of the nearest names; it does not keep the others.
pub(crate) struct NearestNames<'w> {
    wanted: &'w str,
    count: usize,
    best: Vec<(usize, String)>,
}

impl<'w> NearestNames<'w> {
    pub(crate) fn new(wanted: &'w str, count: usize) -> Self {
        Self {
            wanted,
            count,
            best: Vec::with_capacity(count + 1),
        }
    }

    /// Considers a name.
    pub(crate) fn offer(&mut self, name: &str) {
        let allowed = allowed(self.wanted);
        let comparable =
            self.wanted.len() <= MAX_COMPARED && self.wanted.len().abs_diff(name.len()) <= allowed;
        if !comparable {
            return;
        }
        let distance = strsim::osa_distance(self.wanted, name);
        let full = self.best.len() == self.count
            && self.best.last().is_none_or(|(worst, _)| distance >= *worst);
        if distance > allowed || full || self.best.iter().any(|(_, known)| known == name) {
            return;
        }
        let place = self.best.partition_point(|(known, _)| *known <= distance);
        self.best.insert(place, (distance, name.to_owned()));
        self.best.truncate(self.count);
    }

    /// Returns the nearest names, nearest first.
    pub(crate) fn names(self) -> Vec<String> {
        self.best.into_iter().map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_come_first_and_far_ones_not_at_all() {
        let mut nearest = NearestNames::new("pdi", 2);
        for name in ["comm", "pid", "mm", "pdis", "pid", "pdx"] {
            nearest.offer(name);
        }
        assert_eq!(nearest.names(), ["pid", "pdis"]);
    }
}
