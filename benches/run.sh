#!/usr/bin/env bash
# What `dptrace run` costs beside Debian's bpftrace, in one go: a whole run of small scripts, and each hit of a probe.
# Usage, as root: benches/run.sh [ROUNDS] [HITS]        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-7} hits=${2:-300000}
dir=$(mktemp -d)
tracer=
# Only what was started here is ended.
trap '[[ -z $tracer ]] || kill "$tracer" 2>/dev/null; rm -rf "$dir"' EXIT

. benches/binary.sh
dptrace=$DPTRACE
# bpftrace wants tracefs where it is used to have it; in a mount namespace of our own if need be.
if [[ ! -e /sys/kernel/tracing/events && -z ${IN_NAMESPACE:-} ]]; then
    IN_NAMESPACE=1 exec unshare --mount sh -c 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$0" "$@"' \
        "$PWD/benches/run.sh" "$rounds" "$hits"
fi
median() { sort -g "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
row() { printf '%-46s %10s %10s %10s\n' "$@"; }
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

cat >"$dir/target.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) void hit(const char *text, long n) { __asm__ volatile("" ::"r"(text), "r"(n)); }
int main(int argc, char **argv) {
    long n = atol(argv[2]);
    struct timespec a, b;
    getchar();
    hit("a string that is there", 0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (argv[1][0] == 'u') for (long i = 0; i < n; i++) hit("a string that is there", i);
    else for (long i = 0; i < n; i++) syscall(SYS_getppid);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.1f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
}
C
cc -O1 -o "$dir/target" "$dir/target.c"

{
    for ((i = 0; i < 50; i++)); do printf 'usdt:%s:demo100:probe_%03d { @[%d] = count(); }\n' "$dptrace" "$i" "$i"; done
    echo 'interval:ms:1 { exit(); }'
} >"$dir/fifty.bt"
echo 'BEGIN { exit(); }' >"$dir/exit.bt"

echo "a whole run, medians of $rounds: ms of the clock, and the largest resident size in MiB"
row "" dptrace bpftrace ratio
for script in exit fifty; do
    for ((round = 0; round < rounds; round++)); do
        for tool in dptrace bpftrace; do
            # What a run before has left to the kernel to take away must be gone: the next one would wait for it.
            sleep 4
            case $tool in dptrace) command=("$dptrace" run) ;; bpftrace) command=(bpftrace) ;; esac
            began=${EPOCHREALTIME/./}
            /usr/bin/time -o "$dir/memory" -f %M "${command[@]}" "$dir/$script.bt" >/dev/null 2>&1 || true
            echo $(((${EPOCHREALTIME/./} - began) / 10)) | awk '{ print $1 / 100 }' >>"$dir/$script.$tool"
            tail -n 1 "$dir/memory" | awk '{ printf "%.1f\n", $1 / 1024 }' >>"$dir/$script.$tool.memory"
        done
    done
    for what in "" .memory; do
        ours=$(median "$dir/$script.dptrace$what") theirs=$(median "$dir/$script.bpftrace$what")
        row "$script$what" "$ours" "$theirs" "$(ratio "$theirs" "$ours")"
    done
done

# Nanoseconds of a call in the target, with a script at work (or none).
one() {
    local tool=$1 kind=$2 script=$3
    rm -f "$dir/go" && mkfifo "$dir/go"
    "$dir/target" "$kind" "$hits" <"$dir/go" >"$dir/out" &
    local target=$!
    exec 9>"$dir/go"
    : >"$dir/log"
    case $tool in
    dptrace) "$dptrace" run -e "BEGIN { printf(\"begun\\n\"); } $script" >"$dir/log" 2>&1 & tracer=$! ;;
    bpftrace) bpftrace -B line -e "BEGIN { printf(\"begun\\n\"); } $script" > >(grep -m1 begun >"$dir/log"; exec cat >/dev/null) 2>/dev/null & tracer=$! ;;
    esac
    if [[ $tool != none ]]; then
        until grep -q -e Attached -e begun "$dir/log"; do sleep 0.01; done
        sleep 0.3
    fi
    echo >&9
    exec 9>&-
    wait "$target"
    if [[ -n $tracer ]]; then
        kill -INT "$tracer" 2>/dev/null || true
        wait "$tracer" 2>/dev/null || true
        tracer=
    fi
    cat "$dir/out"
}

printf '\nadded cost of a hit in ns, medians of %s rounds of %s hits, in turns\n' "$rounds" "$hits"
row "" dptrace bpftrace ratio
hit="uprobe:$dir/target:hit"
call="tracepoint:raw_syscalls:sys_enter"
number=0
while IFS='|' read -r kind name script; do
    number=$((number + 1))
    for ((round = 0; round < rounds; round++)); do
        for tool in none dptrace bpftrace; do one "$tool" "$kind" "$script" >>"$dir/$number.$tool"; done
    done
    bare=$(median "$dir/$number.none")
    added() { awk "BEGIN { printf \"%.0f\", $(median "$dir/$number.$1") - $bare }"; }
    row "$name" "$(added dptrace)" "$(added bpftrace)" "$(ratio "$(added dptrace)" "$(added bpftrace)")"
done <<EOF
u|uprobe, @[comm] = count()|$hit { @[comm] = count(); }
u|uprobe, @[tid] = hist(nsecs)|$hit { @[tid] = hist(nsecs); }
u|uprobe, printf of a string|$hit { printf("%s\\n", str(arg0)); }
s|sys_enter, @[comm] = count()|$call { @[comm] = count(); }
s|sys_enter, @[tid] = hist(nsecs)|$call { @[tid] = hist(nsecs); }
EOF
