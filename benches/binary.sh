# Sourced by the benchmarks: the dptrace that is measured, in $DPTRACE. If none is named, the one static file that people get.
if [[ -z ${DPTRACE:-} ]]; then
    cargo static --quiet -p dptrace
    DPTRACE=${CARGO_TARGET_DIR:-$PWD/target}/x86_64-unknown-linux-gnu/dist/dptrace
fi
export DPTRACE
