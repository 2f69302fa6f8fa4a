//! Object specs, lifetimes, recordings and the annotator.
#![forbid(unsafe_code)]
