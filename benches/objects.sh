#!/usr/bin/env bash
# How long `dptrace objects -p` takes for many connections, and what it costs the target.
# Usage: benches/objects.sh [ROUNDS] [CONNECTIONS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-9} connections=${2:-1000}
dir=$(mktemp -d)
started= reading=
# Only what was started here is ended.
trap 'for pid in $started $reading; do kill "$pid" 2>/dev/null || true; done; rm -rf "$dir"' EXIT

. benches/binary.sh
median() { sort -g "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# Starts the demo target, and waits until it says who it is. Its input is open until the end of the command that is given it.
target() {
    : >"$dir/said"
    "$DPTRACE" demo-target --no-probes --truth "$dir/truth" "$@" 2>"$dir/said" <"$dir/input" &
    started=$!
    exec 9>"$dir/input"
    until grep -q 'demo-target: pid' "$dir/said"; do sleep 0.01; done
}
ended() {
    exec 9>&-
    wait "$started" || true
    started=
}
mkfifo "$dir/input"

echo "$connections connections, medians of $rounds runs in ms: reading all of them twice, and the whole command"
target --connections "$connections" --wait-connected --for 5m
for ((round = 0; round < rounds; round++)); do
    begun=$(date +%s%N)
    "$DPTRACE" objects qpair -v -p "$started" >"$dir/found" 2>"$dir/notes" 9>&-
    echo $((($(date +%s%N) - begun) / 1000000)) >>"$dir/whole"
    grep -o 'read twice in [0-9.]*' "$dir/notes" | grep -o '[0-9.]*$' >>"$dir/reading"
done
head -1 "$dir/found"
kill "$started"
ended
printf '%-40s %10s\n' reading "$(median "$dir/reading")" "whole command" "$(median "$dir/whole")"

echo
echo "requests a second of the demo target at its highest rate, 2 s each, medians of $rounds runs in turns:"
load() {
    target --connections "$connections" --flat-out --life 1000000 --for 2s
    case $1 in
    none) ;;
    record) "$DPTRACE" record --no-probes -p "$started" -o /dev/null 2>/dev/null 9>&- & ;;
    # Each time it also reads the program's debug information anew.
    objects) (while "$DPTRACE" objects qpair -p "$started" >/dev/null 2>&1 9>&-; do sleep 1; done) & ;;
    esac
    [[ $1 == none ]] || reading=$!
    ended
    # It ends by itself when there is no process any more.
    [[ -z $reading ]] || wait "$reading" || true
    reading=
    requests=$(grep -o '"requests_completed": *[0-9]*' "$dir/truth" | grep -o '[0-9]*$')
    echo $((requests / 2)) >>"$dir/$1.rate"
}
for ((round = 0; round < rounds; round++)); do
    for how in none record objects; do load "$how"; done
done
printf '%-40s %10s\n' "nobody reads" "$(median "$dir/none.rate")" "record --no-probes" "$(median "$dir/record.rate")" \
    "objects -p, once a second" "$(median "$dir/objects.rate")"
