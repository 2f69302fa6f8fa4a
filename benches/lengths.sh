#!/usr/bin/env bash
# How long the programs are that `dptrace run` loads, beside those of Debian's bpftrace for the same script: instructions as
# the kernel has them after its own rewriting, and bytes of machine code.
# Usage, as root: benches/lengths.sh        (see benches/README.md)
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
tracer=
# Only what was started here is ended.
trap '[[ -z $tracer ]] || kill "$tracer" 2>/dev/null; rm -rf "$dir"' EXIT

. benches/binary.sh
# bpftrace wants tracefs where it is used to have it; in a mount namespace of our own if need be.
if [[ ! -e /sys/kernel/tracing/events && -z ${IN_NAMESPACE:-} ]]; then
    IN_NAMESPACE=1 exec unshare --mount sh -c 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$0" "$@"' \
        "$PWD/benches/lengths.sh" "$@"
fi
row() { printf '%-44s %8s %8s %6s %10s %10s %6s\n' "$@"; }
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

cat >"$dir/target.c" <<'C'
#include <unistd.h>
__attribute__((noinline)) void hit(const char *text, long n) { __asm__ volatile("" ::"r"(text), "r"(n)); }
int main(void) { hit("text", 1); pause(); }
C
cc -O1 -o "$dir/target" "$dir/target.c"

# Instructions and bytes of machine code of all programs of a process that has attached its probes.
loaded() {
    bpftool prog show --json | python3 -c '
import glob, json, re, sys
own = {int(n) for f in glob.glob(f"/proc/{sys.argv[1]}/fdinfo/*") for n in re.findall(r"prog_id:\s+(\d+)", open(f).read())}
programs = [p for p in json.load(sys.stdin) if p["id"] in own]
print(sum(p["bytes_xlated"] for p in programs) // 8, sum(p["bytes_jited"] for p in programs))' "$1"
}

# Runs a script with a tool until its programs are attached, and measures them; "- -" where the tool refuses it.
measure() {
    local tool=$1 script=$2 log=$dir/log
    # Here and not in the background, where what the last one said would still be read.
    : >"$log"
    case $tool in
    dptrace) "$DPTRACE" run "$script" >"$log" 2>&1 & ;;
    bpftrace) bpftrace "$script" >"$log" 2>&1 & ;;
    esac
    tracer=$!
    until grep -q '^Attach' "$log" && [[ $tool == dptrace || -n $(loaded "$tracer" | grep -v '^0') ]]; do
        if ! kill -0 "$tracer" 2>/dev/null; then
            tracer=
            echo - -
            return
        fi
        sleep 0.02
    done
    # bpftrace says so before it has loaded all of them.
    if [[ $tool == bpftrace ]]; then sleep 0.7; fi
    loaded "$tracer"
    # Not an interrupt: what a shell starts behind it ignores those until it has a handler. And bpftrace sleeps through
    # one that comes before it waits.
    while kill "$tracer" 2>/dev/null; do sleep 0.1; done
    wait "$tracer" 2>/dev/null || true
    tracer=
}

hit="uprobe:$dir/target:hit"
call="tracepoint:raw_syscalls:sys_enter"
number=0
names=()
while IFS='|' read -r name script; do
    number=$((number + 1))
    names+=("$name")
    printf '%s\n' "$script" >"$dir/$number.bt"
done <<EOF
uprobe, @[comm] = count()|$hit { @[comm] = count(); }
uprobe, @[tid] = hist(nsecs)|$hit { @[tid] = hist(nsecs); }
uprobe, printf of a number|$hit { printf("%d\\n", arg1); }
uprobe, printf of a string|$hit { printf("%s\\n", str(arg0)); }
sys_enter, @[comm] = count()|$call { @[comm] = count(); }
sys_enter, @[tid] = hist(nsecs)|$call { @[tid] = hist(nsecs); }
sys_enter, printf of a string|$call { printf("%s %d\\n", comm, args->id); }
@ = count()|$call { @ = count(); }
@[args->id] = sum, avg, stats|$call { @a[args->id] = sum(cpu); @b[args->id] = avg(cpu); @c[args->id] = stats(cpu); }
min, max|$call { @a = min(args->id); @b = max(args->id); }
lhist|$call { @ = lhist(args->id, 0, 400, 10); }
@[kstack] = count()|$call { @[kstack] = count(); }
@[ustack] = count()|$hit { @[ustack] = count(); }
@[ustack, comm, pid] = count()|$hit { @[ustack, comm, pid] = count(); }
tuple key of numbers|$call { @[pid, tid, args->id] = count(); }
tuple key with strings|$call { @["a", comm, args->id] = count(); }
a map's number read and written|$call { @a[tid] = nsecs; @b[tid] = @a[tid] + 1; }
start and end with a predicate|$call { @s[tid] = nsecs; } tracepoint:raw_syscalls:sys_exit /@s[tid]/ { @ns = hist(nsecs - @s[tid]); delete(@s[tid]); }
@x++, @y += n|$call { @x++; @y[args->id]++; @z += args->id; }
chain of fields|$call { \$t = (struct task_struct *)curtask; @[\$t->group_leader->real_parent->pid] = count(); }
string of a field|$call { \$t = (struct task_struct *)curtask; printf("%s\\n", \$t->group_leader->comm); }
if, else, numbers|$call { if (args->id == 0) { @a = count(); } else if (args->id > 10 && args->id < 20) { @b = count(); } }
while|$hit { \$i = 0; while (\$i < 10) { @[\$i] = count(); \$i++; } }
unroll|$hit { \$i = arg1; unroll(5) { @[\$i] = count(); \$i += 2; } }
arithmetic|$hit { \$a = arg1 * 3 + 7; \$b = (\$a << 2) / 5 - arg0 % 9; @ = sum(\$a ^ \$b); }
comm == "text"|$call /comm == "some-command"/ { @ = count(); }
EOF

row "" ours theirs ratio "our code" "theirs" ratio
for ((i = 1; i <= number; i++)); do
    read -r ours our_code <<<"$(measure dptrace "$dir/$i.bt")"
    read -r theirs their_code <<<"$(measure bpftrace "$dir/$i.bt")"
    if [[ $ours == - || $theirs == - ]]; then
        row "${names[i - 1]}" "$ours" "$theirs" - "$our_code" "$their_code" -
        continue
    fi
    row "${names[i - 1]}" "$ours" "$theirs" "$(ratio "$ours" "$theirs")" \
        "$our_code" "$their_code" "$(ratio "$our_code" "$their_code")"
done
