#!/bin/sh
# A thread computes on a CPU; another thread of its process unmaps memory all the time, on other CPUs. Each time, the CPU is
# interrupted to forget the translation.
#
#     docs/examples/cpus/tlb-flushes.sh [CPU] [SECONDS]
. "$(dirname "$0")/common.sh"

label=TLB
[ -n "$(came TLB)" ] || label=CAL
before=$(came "$label")
echo "a thread computes on CPU $cpu, another one unmaps memory on CPU $other, for $seconds s"
timeout "$((seconds + 10))" python3 -c '
import hashlib, mmap, os, sys, threading, time

cpu, other, seconds = (int(word) for word in sys.argv[1:])
end = time.monotonic() + seconds

def compute():
    os.sched_setaffinity(0, {cpu})
    while time.monotonic() < end:
        # It computes some 20 ms without the lock of the interpreter.
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 50_000)

thread = threading.Thread(target=compute)
thread.start()
os.sched_setaffinity(0, {other})
count = 0
while time.monotonic() < end:
    memory = mmap.mmap(-1, 4096)
    memory[0] = 1
    memory.close()
    count += 1
thread.join()
print(f"unmapped {count} times")
' "$cpu" "$other" "$seconds"
now=$(came "$label")
[ -z "$now" ] || echo "interrupts $label on CPU $cpu: $((now - before))"
