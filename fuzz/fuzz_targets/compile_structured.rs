//! A script that the input chooses, part by part: nearly all of them are valid, so that what is behind the parser is met.
#![no_main]

use compiler_testkit::sample::chosen;
use dptrace_fuzz::compiled::check_compile;
use libfuzzer_sys::fuzz_target;
use testkit::script::Generator;

/// Definitions in front of all scripts.
const HEAD: &str = "\
    struct own { int a; struct { char b[5]; short c : 4, d : 3; }; struct own *next; struct bits bits[3]; };\n\
    union two { int64 a; uint8 b[8]; struct own own; };\n\
    enum color { RED, GREEN = 7, BLUE = 0x100000000 };\n\
    macro twice($x) { $x * 2 }\n\
    macro bump(@m, k) { @m[k]++ }\n\
    let @lru = lruhash(10);\n\
    begin { @t1 = (1, \"a\", (2, 3)); @k[1, \"a\"] = 1; @o = *(struct own *)0; @l[0] = (x=1, y=\"s\"); @c = count(); \
    @cc[1, 2] = count(); @a = avg(1); @lru[1] = 2; @st[1] = stats(1); @arr = (uint8[4])1; @big = *(struct big *)0; }\n";
const PROBES: &[&str] = &[
    "uprobe:/bin/a:main",
    "uretprobe:/bin/a:f",
    "usdt:/bin/a:provider:probe",
    "usdt:*:odd",
    "tracepoint:raw_syscalls:sys_enter",
    "tracepoint:sched:sched_switch",
    "tracepoint:net:odd",
    "rawtracepoint:sched_switch",
    "kprobe:vfs_read",
    "kretprobe:vfs_* / pid == 7 /",
    "fentry:vfs_read",
    "fexit:vfs_read",
    "interval:s:1",
    "software:faults:1",
    "self:signal:SIGUSR1",
    "end",
];
/// Statements that the generator does not know. Where a probe has no such thing, the script is refused: no harm.
const STATEMENTS: &[&str] = &[
    "@t1 = (3, comm, (cpu, rand)); ",
    "print(@t1.2.1);",
    "$o = (struct own *)arg0; @o = *$o; print($o->next->next->c);",
    "print(@o.d); print(@o.b); print(@o.bits[1].c); print(@o.bits[rand].d); @o = @o;",
    "$p = (struct own *)(uint64)rand; if ($p->bits[cpu].a == $p->d) { printf(\"%s %x\\n\", $p->b, $p->a); }",
    "@arr = (uint8[4])pid; print(@arr[cpu]); print(@arr == @arr);",
    "print(@big.tasks[rand]); print(@big.all[3].c); @big2[@big.text] = count();",
    "$big = (struct big *)curtask; print($big->text); @bb[$big->all[2]] = sum($big->all[rand % 20].d);",
    "$task = (struct task_struct *)curtask; @names[$task->comm, $task->group_leader->comm] = count();",
    "$task = (struct task_struct *)curtask; print(($task->kind, $task->wide, $task->exiting, $task->y[2]));",
    "print(((struct task_struct *)curtask)->tail[rand]); print(((struct task_struct *)curtask)->arrays.in[1].deep[cpu][1]);",
    "@l[cpu] = (x=cpu, y=comm); print(@l[0].x); $r = @l[1]; print($r.y); print($r);",
    "for ($kv : @k) { print($kv); if ($kv.0.0 > 3) { break; } @kk[$kv.0] = $kv.1; }",
    "for ($kv : @l) { for ($in : @k) { @pairs[$kv.1.x, $in.0.1] = count(); return; } }",
    "for ($kv : @cc) { print(($kv.0.1, $kv.1)); }",
    "for ($i : rand..10) { for ($j : $i..cpu) { if ($i == $j) { continue; } @n[$i, $j]++; } }",
    "while (rand > 5) { while (cpu > 3) { bump(@n2, comm); break; } }",
    "unroll (3) { $u = cpu; unroll (4) { @u[$u, comm] += $u; } }",
    "bump(@n3, (comm, pid)); print(twice(cpu));",
    "printf(\"%-10s|%*d|%c|%p|%r|%rx\\n\", str(arg0), 5, pid, 65, arg1, buf(arg0, 10), buf(arg1, arg2));",
    "print(str(arg0) == str(arg1, 64) ? \"same\" : func);",
    "@s2[str(arg0, 200)] = str(arg1, 100); if (@s2[\"a\"] == @s2[comm]) { delete(@s2, comm); }",
    "$h = strcontains(str(arg0), \"needle\") && strcontains(comm, str(arg1, 8)) || strncmp(comm, str(arg0), 5) == 0;",
    "@st[pid] = stats(arg0 - arg1); @h2[comm] = hist(arg0, 3); @lh = lhist((int16)arg0, -10, 100, 5);",
    "@ts[comm] = tseries(arg0, 10s, 5, \"max\"); @m2 = max(retval); @m3[retval] = min((int8)retval);",
    "print((int64)@c + @a); print(@c / 3, 1); if (@cc[1, 2] > 5) { clear(@cc); } zero(@c);",
    "print(len(@k)); print(has_key(@k, (1, \"a\"))); print(@k, 3, 2); print(@k[2, \"b\"]);",
    "@stacks[kstack, ustack(perf, 5)] = count(); print(kstack(3)); print(ksym(arg0)); print(usym(arg1));",
    "print(args.id); print(args.args[rand]); @ids[args.id, args.args[2]] = count();",
    "print(args.prev_comm); @ns[args.next->pid] = nsecs; print(args.next->comm);",
    "print(str(args.name)); print(args.bytes); print(args.flag ? args.state : STATE_BUSY);",
    "print(args.task->cred->uid); print(str(args.buffer, args.count)); print(*args.at);",
    "print(retval); print(reg(\"ip\")); print(func); print(probe); @f[func] = count();",
    "print(arg0 + arg1 * arg2); @args[arg0, (int32)arg1, (uint8)arg2] = count(); print(sarg0);",
    "print(ntop(arg0)); print(ntop(2, args.args[1])); print(macaddr(arg0)); print(pton(\"::1\")); print(strftime(\"%T\", nsecs));",
    "print((enum color)arg0); print((enum state)args.state); printf(\"%s %d\\n\", (enum color)7, GREEN);",
    "print(-(int8)arg0 / (int64)arg1 % 5 >> 2 << cpu); $x = (uint16)arg0 ?: (int32)arg1; $x ^= 3; $x <<= $x; print(!$x);",
    "let $q : uint8[12]; let $z : struct own; let $w : string[32] = str(arg0, 32); print(($q, $z, $w));",
    "$v = { let $inner = cpu; $inner + 1 }; $w2 = if ($v) { (1, \"x\") } else { (2, \"longer\") }; print($w2.1);",
    "print(*(uint16 *)arg0); print(((int32 *)arg1)[cpu]); @pp = (uint64 **)arg0; print(**@pp); print(@pp + 1);",
    "join(arg0); cat(\"/proc/%d/comm\", pid); time(\"%H\"); exit(3);",
    "if comptime (sizeof(struct own) > 8) { print(offsetof(struct own, d)); } else { print(nosuch); }",
    "print((1, (2, (3, (comm, (int8)4))), \"text\") == (1, (2, (3, (comm, (int8)4))), \"text\"));",
    "@same[(struct own *)arg0] = ((struct own *)arg0)->next; print(@same[0]->bits[0].b);",
];

fuzz_target!(|input: &[u8]| {
    let (bits, rest) = input.split_first().unwrap_or((&0, &[]));
    let mut bytes = rest.iter();
    // At the end of the input all choices are the first one.
    let mut byte = move || bytes.next().map_or(0, |byte| u64::from(*byte));
    let choose = move |limit: u64| {
        (0..limit.ilog2().div_ceil(8).max(1)).fold(0, |sum, _| sum * 256 + byte()) % limit
    };
    let script = Generator::new(choose).with(PROBES, STATEMENTS).script();
    check_compile(
        &(HEAD.to_owned() + &script),
        &chosen(usize::from(*bits & 15)),
    );
});
