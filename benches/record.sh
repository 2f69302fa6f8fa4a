#!/usr/bin/env bash
# What recording costs, beside Debian's bpftrace, in one go: until all is attached, and for each hit of a probe.
# Usage, as root: benches/record.sh [ROUNDS] [HITS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-7} hits=${2:-100000}
dir=$(mktemp -d)
target=
tracer=
# Only what was started here is ended.
trap '[[ -z $tracer ]] || kill "$tracer" 2>/dev/null; [[ -z $target ]] || kill "$target" 2>/dev/null; rm -rf "$dir"' EXIT

. benches/binary.sh
dptrace=$DPTRACE
"$dptrace" generate | sed "s|__EXE__|$dptrace|g" >"$dir/qpair.bt"
# Strings of 64 bytes, as bpftrace cuts them: its version 0.17 has no room for two of 200.
median() { sort -g "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
row() { printf '%-52s %12s %12s\n' "$@"; }

# A target that waits to be let go; its process is $target, and what it prints is in $dir/out.
start_target() {
    rm -f "$dir/go" && mkfifo "$dir/go"
    "$dptrace" demo-target --wait --no-trace-file --for 10m "$@" <"$dir/go" >"$dir/out" 2>"$dir/err" &
    target=$!
    exec 9>"$dir/go"
    until grep -q 'demo-target: pid' "$dir/err"; do sleep 0.01; done
}
end_target() {
    kill "$target" 2>/dev/null || true
    exec 9>&-
    wait "$target" || true
    target=
}
# Waits until this is in a file.
wait_for() { until grep -q "$1" "$2" 2>/dev/null; do sleep 0.01; done; }

echo "start, medians of $rounds runs on a program with 100 more probes:"
start_target
{ cat "$dir/qpair.bt" && echo 'interval:ms:1 { exit(); }'; } >"$dir/start.bt"
for ((round = 0; round < rounds; round++)); do
    for tool in dptrace bpftrace; do
        case $tool in
        dptrace) command=("$dptrace" record -p "$target" --for 1ms -o /dev/null) ;;
        bpftrace) command=(bpftrace -p "$target" -o /dev/null "$dir/start.bt") ;;
        esac
        /usr/bin/time -o "$dir/time" -f '%U %S %M' "${command[@]}" >/dev/null 2>"$dir/errors" || {
            # bpftrace 0.17 can't detach from a process's probes and says so at its end, when all was done.
            [[ $tool == bpftrace ]] && grep -q 'failed to detach' "$dir/errors"
        }
        read -r user system peak < <(tail -n 1 "$dir/time")
        awk "BEGIN { print ($user + $system) * 1000 }" >>"$dir/$tool.cpu"
        awk "BEGIN { printf \"%.1f\n\", $peak / 1024 }" >>"$dir/$tool.memory"
    done
    began=${EPOCHREALTIME/./}
    exec 8< <("$dptrace" record -p "$target" --for 1ms -o /dev/null 2>&1)
    read -r -u 8 _
    echo $(((${EPOCHREALTIME/./} - began) / 100)) | awk '{ print $1 / 10 }' >>"$dir/attached"
    cat <&8 >/dev/null
    exec 8<&-
done
end_target
row "" dptrace bpftrace
row "processor time of the whole run, ms" "$(median "$dir/dptrace.cpu")" "$(median "$dir/bpftrace.cpu")"
row "largest resident size, MiB" "$(median "$dir/dptrace.memory")" "$(median "$dir/bpftrace.memory")"
row "from start to attached, ms of the clock" "$(median "$dir/attached")" ""

printf '\na hit of nvmf_ctrlr_add_qpair (two strings), medians of %s rounds of %s hits, in turns:\n' "$rounds" "$hits"
one() {
    start_target --hits "$hits"
    : >"$dir/log"
    case $1 in
    dptrace)
        "$dptrace" record -p "$target" -o /dev/null 2>"$dir/log" &
        tracer=$!
        wait_for 'attached to' "$dir/log"
        ;;
    bpftrace)
        { echo 'BEGIN { printf("begun\n"); }' && cat "$dir/qpair.bt"; } >"$dir/hits.bt"
        # It says that it begins when all is attached; the rest of what it prints is thrown away.
        bpftrace -B line -p "$target" "$dir/hits.bt" 2>>"$dir/log" > >(grep -m1 begun >>"$dir/log"; exec cat >/dev/null) &
        tracer=$!
        wait_for begun "$dir/log"
        sleep 0.5
        ;;
    esac
    echo >&9
    wait "$target" || true
    target=
    exec 9>&-
    if [[ -n $tracer ]]; then
        kill -INT "$tracer" 2>/dev/null || true
        wait "$tracer" || true
        tracer=
    fi
    grep -o '[0-9.]* ns a hit' "$dir/out" | cut -d' ' -f1 >>"$dir/$1.hit"
    tail -n 1 "$dir/log" >"$dir/$1.last"
}
for ((round = 0; round < rounds; round++)); do
    for tool in none dptrace bpftrace; do one "$tool"; done
done
row "" dptrace bpftrace
row "nanoseconds a hit (without a tracer: $(median "$dir/none.hit"))" "$(median "$dir/dptrace.hit")" "$(median "$dir/bpftrace.hit")"
row "dptrace / bpftrace" "$(awk "BEGIN { printf \"%.2f\", $(median "$dir/dptrace.hit") / $(median "$dir/bpftrace.hit") }")" ""
echo "dptrace's last line: $(cat "$dir/dptrace.last")"
echo "bpftrace's: $(cat "$dir/bpftrace.last")"
