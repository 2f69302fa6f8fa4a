//! The record filters, as typed.

use clap::Args;
use console::terminal;
use errors::usage;
use objects::ObjectSpec;
use records::{Filter, OwnerFilter};
use requests::select;
use spdk_trace::{TickRate, Tpoint};
use trace_source::dpdk::EventFilter;

/// The filters, as typed. A record must pass all of them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only records of these lcores: numbers and ranges, such as 0,4-7
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    lcore: Vec<String>,

    /// Only records of these tracepoints, such as 'TCP_REQ_*,BDEV_IO_DONE'
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',')]
    tpoint: Vec<String>,

    /// Only records of these owners, by description or by prefix and number, such as '*cnode1*' or
    /// t03
    #[arg(long, value_name = "GLOB")]
    owner: Option<String>,

    /// Only records of these objects, or related to them
    ///
    /// By name (r10), or by address (0x7f00dc0a8000). If you read a trace that is still being
    /// written several times, addresses stay the same, names may not.
    #[arg(long, value_name = "r10,...", value_delimiter = ',')]
    object: Vec<String>,

    /// Only records from this time on: 1ms, or microseconds
    ///
    /// It counts from the first record, as in the listing.
    #[arg(long, value_name = "TIME", value_parser = ::text::duration::parse_micros)]
    since: Option<f64>,

    /// Only records up to this time: 1ms, or microseconds
    ///
    /// It counts from the first record, as in the listing.
    #[arg(long, value_name = "TIME", value_parser = ::text::duration::parse_micros)]
    until: Option<f64>,

    /// Only records that meet this condition
    ///
    /// FIELD=GLOB, FIELD!=GLOB, or FIELD, one of < <= > >=, and a number. If given several times,
    /// all conditions must be met. FIELD is lcore, tpoint, owner, poller, size, object, related,
    /// time (the object's age: 20us, 1ms, or microseconds), tsc, arg.NAME, owner.PROPERTY (peer,
    /// subnqn, listener, qid, bdev, ...) or OBJECT.PROPERTY (qpair.hostnqn, ...).
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,

    /// Only the time span in which all lcores have records
    ///
    /// If rings wrapped, this leaves out records older than the first record of the lcore that
    /// starts last, as spdk_trace does.
    #[arg(long)]
    pub(crate) common: bool,
}

impl FilterArgs {
    /// Resolves the filters for a trace with these tracepoints and objects.
    pub(crate) fn resolve(
        &self,
        tpoints: &[Tpoint],
        specs: &[ObjectSpec],
        rate: TickRate,
    ) -> anyhow::Result<Filter> {
        let conditions = self
            .conditions
            .iter()
            .map(|text| select::condition(text, specs));
        let owner = self.owner.as_deref().map(select::pattern).transpose()?;
        Ok(Filter {
            lcores: if self.lcore.is_empty() {
                None
            } else {
                Some(select::lcores(&self.lcore)?)
            },
            tpoints: if self.tpoint.is_empty() {
                None
            } else {
                Some(select::matching(
                    &self.tpoint,
                    tpoints,
                    &terminal::observer(),
                )?)
            },
            owner: owner.map(OwnerFilter::new),
            objects: if self.object.is_empty() {
                None
            } else {
                Some(select::objects(&self.object)?)
            },
            since: self.since.map(|us| ticks(us, rate, f64::ceil)),
            until: self.until.map(|us| ticks(us, rate, f64::floor)),
            conditions: conditions.collect::<anyhow::Result<_>>()?,
        })
    }
}

impl FilterArgs {
    /// Resolves the filters for a DPDK trace.
    pub(crate) fn resolve_events(&self) -> anyhow::Result<EventFilter> {
        let given = [
            ("--owner", self.owner.is_some()),
            ("--object", !self.object.is_empty()),
            ("--common", self.common),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(usage(format!(
                "{option} works only for SPDK traces: DPDK's have no owners and no objects"
            )));
        }
        let conditions = self.conditions.iter().map(|text| {
            let (name, test) = select::condition_parts(text)?;
            Ok((name.strip_prefix("arg.").unwrap_or(name).to_owned(), test))
        });
        Ok(EventFilter {
            lcores: if self.lcore.is_empty() {
                None
            } else {
                Some(select::lcores(&self.lcore)?)
            },
            tpoints: self
                .tpoint
                .iter()
                .map(|glob| select::pattern(glob))
                .collect::<anyhow::Result<_>>()?,
            since: self.since,
            until: self.until,
            conditions: conditions.collect::<anyhow::Result<_>>()?,
        })
    }
}

fn ticks(us: f64, rate: TickRate, round: fn(f64) -> f64) -> u64 {
    // Printed times are rounded to a thousandth; a time copied from the listing must still match
    // its own record.
    let slack = if round(0.5) > 0.5 { -0.0005 } else { 0.0005 };
    round((us + slack) * rate.get() as f64 / 1e6) as u64
}
