//! Serves requests, for tries by hand: see `testkit::requests`.

use clap::Parser as _;
use testkit::requests::{ServerOptions, serve};

fn main() -> std::io::Result<()> {
    serve(&ServerOptions::parse())
}
