# What the examples of docs/cpus.md share. They run as root, on a machine with two CPUs or more, and end by themselves.

cpu=${1:-1}
seconds=${2:-5}

fail() {
    echo "$0: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "run it as root"
case $cpu$seconds in
    *[!0-9]*) fail "usage: $0 [CPU] [SECONDS]" ;;
esac
[ "$seconds" -le 20 ] || fail "20 seconds at most: others need this CPU"
[ -d "/sys/devices/system/cpu/cpu$cpu" ] || fail "there is no CPU $cpu"
[ "$(nproc --all)" -ge 2 ] || fail "it needs two CPUs"

# The shell stays on another CPU, so that it can end what it started.
other=$([ "$cpu" = 0 ] && echo 1 || echo 0)
taskset -pc "$other" $$ > /dev/null || fail "taskset failed"

# How often an interrupt came to the CPU: the column of /proc/interrupts.
came() {
    awk -v label="$1:" -v cpu="CPU$cpu" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == cpu) column = i + 1 }
        $1 == label { print $column }' /proc/interrupts
}

# The same of a soft interrupt, in /proc/softirqs.
raised() {
    awk -v label="$1:" -v cpu="CPU$cpu" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == cpu) column = i + 1 }
        $1 == label { print $column }' /proc/softirqs
}
