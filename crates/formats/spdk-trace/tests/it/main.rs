//! Tests of the reader with generated and damaged traces.

mod common;
mod damage_header;
mod damage_ring;
mod damage_slots;
mod damage_sweep;
mod eras;
mod eras_order;
mod follow;
mod fuzz_found;
mod json;
mod json_cut;
mod json_oracle;
mod live;
mod real;
mod roundtrip;
