//! Events that are due, made on request: a map is read after the output before it was printed.

use bt_abi::wire::WrongSize;
use bt_abi::{Action, ActionKind};
use bt_runtime::table::{PrintArgs, Table, element};
use bt_runtime::{Decoder, Lookups as _, Value, printf};

use super::Session;
use crate::event::{DecodedEvent, Event, joined, number};
use crate::maps;

/// Limit on the bytes of a file that `cat` shows.
const MAX_CAT: u64 = 10 * 1024;

/// Events that are due. Each is made on request; events that are not requested stay.
#[must_use = "events are made when the iterator comes to them"]
pub struct Events<'a> {
    session: &'a mut Session,
    /// True if events stay that earlier ones may still overtake.
    only_due: bool,
    /// True if failures are looked for behind the last one.
    looks_at_end: bool,
}

impl<'a> Events<'a> {
    pub(super) fn due(session: &'a mut Session) -> Self {
        Self {
            session,
            only_due: true,
            looks_at_end: false,
        }
    }

    pub(super) fn all(session: &'a mut Session) -> Self {
        Self {
            session,
            only_due: false,
            looks_at_end: false,
        }
    }

    /// Returns the last events of a session.
    pub(super) fn last(session: &'a mut Session) -> Self {
        Self {
            session,
            only_due: false,
            looks_at_end: true,
        }
    }

    /// Drops the remaining events; returns their number.
    pub fn skip_rest(self) -> u64 {
        let mut count = 0;
        while pop(self.session, self.only_due).is_some() {
            count += 1;
        }
        count
    }
}

fn pop(session: &mut Session, only_due: bool) -> Option<DecodedEvent> {
    if only_due {
        session.order.pop()
    } else {
        session.order.pop_any()
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(failure) = self.session.failures.next() {
                return Some(Event::Failure(failure));
            }
            let Some(decoded) = pop(self.session, self.only_due) else {
                if !std::mem::take(&mut self.looks_at_end) {
                    return None;
                }
                let looked = self.session.look_for_failures();
                self.session.keep(looked);
                continue;
            };
            // Events behind an `exit` do not count.
            if self.session.exit.is_none()
                && let Some(event) = self.session.event(decoded)
            {
                return Some(event);
            }
        }
    }
}

impl Session {
    /// Looks for failures that happened for the first time.
    pub(super) fn look_for_failures(&mut self) -> Result<(), WrongSize> {
        self.failures.look(&self.bpf, &self.machine)
    }

    /// Keeps the first error about data of a wrong form, for the next call that can fail.
    pub(super) fn keep<T>(&mut self, result: Result<T, WrongSize>) -> Option<T> {
        result
            .map_err(|error| self.wrong.get_or_insert(error).clone())
            .ok()
    }

    /// Returns the limit on the bytes that `cat` prints.
    fn cat_limit(&self) -> u64 {
        let others = &self.script.config.others;
        let setting = others.iter().find(|(name, _)| name == "max_cat_bytes");
        setting
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(MAX_CAT)
    }

    /// Returns the event for the caller; `None` for actions that are done here.
    fn event(&mut self, event: DecodedEvent) -> Option<Event> {
        let action = self.script.actions.get(event.action)?;
        let values = event.values.as_slice();
        Some(match &action.kind {
            ActionKind::Printf { format, to } => Event::Printf {
                text: printf::format(format, values),
                to: *to,
                span: action.span,
                callers: action.callers.clone(),
            },
            ActionKind::PrintValue => Event::Value(event.values.into_iter().next()?),
            ActionKind::PrintMap { map } => {
                let table = self.printed_map(*map, values)?;
                Event::Map(self.keep(table)?)
            }
            ActionKind::PrintElement { map } => {
                let printed = self.printed_element(*map, &event, action)?;
                self.keep(printed)?
            }
            ActionKind::Clear { map } => {
                self.script
                    .maps
                    .get(*map)
                    .into_iter()
                    .for_each(|map| maps::clear(&self.bpf, map));
                return None;
            }
            ActionKind::Zero { map } => {
                self.script
                    .maps
                    .get(*map)
                    .into_iter()
                    .for_each(|map| maps::zero(&self.bpf, map));
                return None;
            }
            ActionKind::Exit => {
                let status = number(values.first()) as u8;
                self.exit = Some(status);
                Event::Exit(status)
            }
            ActionKind::Time { format } => {
                let now = sys::clock::real_nanos().cast_signed();
                Event::Time(self.machine.local_time(now, format).unwrap_or_default())
            }
            ActionKind::Join { delimiter } => Event::Join(joined(values, delimiter)),
            ActionKind::Cat { format } => Event::Cat {
                path: printf::format(format, values),
                limit: self.cat_limit(),
            },
            ActionKind::System { format } => Event::System(printf::format(format, values)),
        })
    }

    pub(super) fn decoder(&self) -> Decoder<'_> {
        Decoder::new(&self.machine, &self.script.config.str_trunc_trailer)
    }

    fn printed_map(&self, map: usize, values: &[Value]) -> Option<Result<Table, WrongSize>> {
        let map = self.script.maps.get(map)?;
        let args = PrintArgs {
            top: number(values.first()) as u64,
            div: number(values.get(1)) as u64,
        };
        let elements = maps::elements(&self.bpf, map, &*self.observer);
        Some(Table::printed(map, &elements, args, &self.decoder()))
    }

    fn printed_element(
        &self,
        map: usize,
        event: &DecodedEvent,
        action: &Action,
    ) -> Option<Result<Event, WrongSize>> {
        if let Some(value) = event.values.get(1) {
            return Some(Ok(Event::Value(value.clone())));
        }
        let map = self.script.maps.get(map)?;
        let key = action.fields.first().and_then(|field| {
            let start = field.offset as usize;
            event.bytes.get(start..start + field.ty.size() as usize)
        });
        let zero = || vec![vec![0; map.value.size() as usize]];
        let values = maps::element(&self.bpf, map, key.unwrap_or_default()).unwrap_or_else(zero);
        Some(element(map, &values, &self.decoder()).map(Event::Element))
    }
}
