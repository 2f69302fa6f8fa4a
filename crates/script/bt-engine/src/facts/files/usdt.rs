//! USDT probes of files.

use std::path::PathBuf;
use std::rc::Rc;

use bt_compiler::{NotFound, UsdtPlaces};
use usdt::UsdtProbes;

use super::{UserFiles, not_read, place_text};
use crate::facts::targets::TargetFile;
use crate::facts::{missing_in_groups, pattern};

impl UserFiles {
    pub(in crate::facts) fn usdt(
        &self,
        target: Option<&str>,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Vec<UsdtPlaces>, NotFound> {
        let names = pattern(name)?;
        let providers = provider
            .filter(|text| !text.is_empty())
            .map(pattern)
            .transpose()?;
        let targets = self.targets(target)?;
        let (mut known, mut broken) = (Vec::new(), None);
        let all = targets.each(|found| {
            let file = self.usdt_of(found)?;
            let (probes, opened) = &*file;
            if let Some(first) = probes.faults.first() {
                let left_out = || {
                    format!(
                        "{}: left out {} invalid USDT notes; the first: {first}",
                        found.shown, probes.broken
                    )
                };
                broken.get_or_insert_with(left_out);
            }
            known.extend(
                probes
                    .probes
                    .iter()
                    .map(|probe| (probe.provider.to_string(), probe.name.to_string())),
            );
            let fits = |probe: &usdt::Probe| {
                names.matches(&probe.name)
                    && providers
                        .as_ref()
                        .is_none_or(|pattern| pattern.matches(&probe.provider))
            };
            let fitting = probes
                .probes
                .iter()
                .filter(|probe| fits(probe))
                .map(|probe| UsdtPlaces {
                    path: opened.clone(),
                    shown: found.shown.clone(),
                    provider: probe.provider.to_string(),
                    name: probe.name.to_string(),
                    places: probe.places.clone(),
                });
            Ok(fitting.collect())
        })?;
        if all.is_empty() {
            let place = place_text(target, &targets);
            let wanted = format!("{}:{name}", provider.unwrap_or("*"));
            let near = known
                .iter()
                .map(|(provider, name)| (provider.as_str(), name.as_str()));
            let message = format!("{place} has no USDT probe {wanted}");
            let mut missing = missing_in_groups(message, provider, name, near);
            missing.hints.extend(broken);
            return Err(missing);
        }
        Ok(all)
    }

    /// Returns a file's probes. Only the notes are read: scripts name many probes of one large
    /// file.
    fn usdt_of(&self, found: &TargetFile) -> Result<Rc<(UsdtProbes, PathBuf)>, NotFound> {
        let key = found.place.path();
        if let Some(known) = self.usdt.borrow().get(key) {
            return Ok(Rc::clone(known));
        }
        let file = found
            .place
            .load_notes()
            .map_err(|error| self.not_loaded(&error))?;
        let code = file.code().map_err(|error| not_read(&error))?;
        let mut probes =
            UsdtProbes::read_with(&file.image().map_err(|error| not_read(&error))?, &code);
        if !probes.wanted_symbols().is_empty() {
            let whole = self.load(found)?;
            let debug = self.debug_folders.debug_file(&whole);
            let image = whole.image().map_err(|error| not_read(&error))?;
            probes.resolve(
                &image,
                debug.as_ref().and_then(|debug| debug.image().ok()).as_ref(),
            );
        }
        let known = Rc::new((probes, file.opened().to_owned()));
        self.usdt
            .borrow_mut()
            .insert(key.to_owned(), Rc::clone(&known));
        Ok(known)
    }
}
