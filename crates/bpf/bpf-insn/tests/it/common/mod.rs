//! Parts that several tests share.

pub(crate) mod sample;
pub(crate) mod strategy;
pub(crate) mod table;
