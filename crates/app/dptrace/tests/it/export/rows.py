"""Compares the tables of an export, as DuckDB reads them, with what dptrace prints as JSON of the same trace, row by row."""

import json
import os
import sys

import duckdb


def rows(folder, table, columns):
    files = f"{folder}/{table}/*/*/*/*.parquet"
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning=true)").fetchall()


def printed(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def requests(folder, timeline):
    """All requests of hosts with their stages; the number of these."""
    columns = "request, object, kind, start_ns, whole_ns, finished, size, queue_depth, stages, late_least_ns, late_most_ns, subnqn, part_of"
    known = {}
    for row in rows(folder, "requests", columns):
        if row[12] is None:
            known.setdefault((row[2], row[1], row[4]), []).append(row)
    stages = {}
    columns = "request, stage_no, from_point, to_point, start_ns, stage_ns, lcore, tid, cpu, unknown_ns, late_least_ns, late_most_ns"
    for row in rows(folder, "request_stages", columns):
        stages.setdefault(row[0], []).append(row)
    offset = None
    compared = 0
    for it in (line for line in timeline if "slowest" in line):
        kind = it["first"].rsplit("_", 1)[0]
        same = known[(kind, it["object"], it["length_ns"])]
        if offset is None:
            offset = same[0][3] - it["boot_ns"]
        [row] = [row for row in same if row[3] - offset == it["boot_ns"]]
        (number, _, _, start, _, finished, size, depth, count, least, most, subnqn, _) = row
        has_kernel = least is not None
        assert finished and (size, depth, count) == (it["size"], it["queue_depth"], len(it["stages"])), (row, it)
        if has_kernel:
            assert (least, most) == (it["kernel_at_least_ns"], it["kernel_at_most_ns"]), (row, it)
        if "owner.subnqn" in it["group"]:
            assert subnqn == it["group"]["owner.subnqn"], (row, it)
        own = sorted(stages[number], key=lambda stage: stage[1])
        assert [stage[1] for stage in own] == list(range(count))
        for stage, its in zip(own, it["stages"]):
            at = start + its["at_ns"] - it["at_ns"]
            expected = (its["from"], its["to"], at, its["length_ns"], its["lcore"], its["tid"], its["cpu"])
            assert stage[2:9] == expected, (stage, its)
            if has_kernel:
                taken = [share for share in its["shares"] if share["activity"] in TAKEN]
                sums = [sum(share[bound] for share in taken) for bound in ("at_least_ns", "at_most_ns")]
                assert [stage[9], *stage[10:12]] == [its["unknown_ns"], *sums], (stage, its)
        compared += 1
    whole = sum(1 for same in known.values() for row in same if row[5])
    return compared, whole


TAKEN = ("interrupted", "preempted", "woken", "stopped")


def histograms(folder, latency):
    """Counts, means and percentiles of each kind and stage; the number of these."""
    buckets = {}
    for row in rows(folder, "stage_histograms", "kind, stage, above_ns, up_to_ns, count, sum_ns"):
        buckets.setdefault((row[0], row[1]), []).append(row[2:])
    for it in latency:
        stage = it["stage"]
        stage = stage if stage == "whole" else f"{stage['from']} > {stage['to']}"
        own = sorted(buckets.pop((it["first"].rsplit("_", 1)[0], stage), []))
        count = sum(row[2] for row in own)
        assert count == it["count"], (count, it)
        if count == 0:
            continue
        mean = sum(row[3] for row in own) / count
        assert abs(mean - it["mean_ns"]) <= 2 + mean / 500, (mean, it)
        for name, part in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p99_9_ns", 0.999)):
            rank, passed = max(1, -(-count * round(part * 1000) // 1000)), 0
            for above, up_to, more, _ in own:
                passed += more
                if passed >= rank:
                    break
            # dptrace latency has three digits, and takes times from ticks; here both ends are whole nanoseconds.
            assert above * 0.998 - 2 <= it[name] <= up_to * 1.002 + 2, (name, above, up_to, it)
    assert not buckets, buckets.keys()
    return len(latency)


def records(folder, lines):
    """All records; the number of these."""
    columns = "ticks, lcore, thread, tpoint, object, object_id, related, size, owner, args"
    order = "ORDER BY ticks, lcore, tpoint, object_id, args"
    files = f"{folder}/records/*/*/*/*.parquet"
    own = duckdb.sql(f"SELECT {columns} FROM read_parquet('{files}') {order}").fetchall()
    own = sorted((shown(*row) for row in own), key=json.dumps)
    expected = sorted((as_row(line) for line in lines), key=json.dumps)
    for row, line in zip(own, expected):
        assert row == line, (row, line)
    assert len(own) == len(expected)
    return len(own)


def shown(ticks, lcore, thread, tpoint, name, number, related, size, owner, args):
    number = None if number is None else hex(number % 2**64)
    return [ticks, lcore, thread, tpoint, name, number, related, size, owner, json.loads(args) if args else None]


def as_row(line):
    it = line.get("object", {})
    owner = line["owner"]["description"] if "owner" in line else line.get("poller")
    related = line.get("related")
    named = [line["tsc"], line["lcore"], line.get("thread"), line["tpoint"], it.get("id"), it.get("value"), related]
    return [*named, line.get("size", 0), owner, line.get("args")]


def intervals(folder, lines):
    """All intervals, and that the sums of each thread are those of its intervals; the number of these."""
    columns = "tid, thread, start_ns, interval_ns, activity, taken, caused_by, cause_tid, cause_is_own"
    files = f"{folder}/kernel_intervals/*/*/*/*.parquet"
    own = duckdb.sql(f"SELECT {columns} FROM read_parquet('{files}')").fetchall()
    own.sort(key=lambda row: (row[2], row[0]))
    lines.sort(key=lambda line: (line["from_ns"], line["tid"]))
    assert len(own) == len(lines), (len(own), len(lines))
    offset = own[0][2] - lines[0]["from_ns"]
    sums = {}
    for (tid, thread, start, length, activity, taken, cause, other, is_own), it in zip(own, lines):
        by = it.get("by", {})
        said = (it["tid"], it["comm"], it["from_ns"] + offset, it["to_ns"] - it["from_ns"], it["activity"])
        assert (tid, thread, start, length, activity) == said, it
        assert taken == (activity in TAKEN)
        assert (cause, other, is_own) == (by.get("comm", it.get("call", it.get("interrupt"))), by.get("tid"), by.get("own"))
        total = sums.setdefault((tid, activity, cause), [0, 0])
        total[0] += length
        total[1] += 1
    for tid, activity, cause, total, times in duckdb.sql(
        "SELECT tid, activity, caused_by, sum(total_ns), sum(times) FROM "
        f"read_parquet('{folder}/thread_budgets/*/*/*/*.parquet') GROUP BY ALL"
    ).fetchall():
        assert sums.pop((tid, activity, cause)) == [total, times], (tid, activity, cause, total, times)
    assert not sums, sums
    return len(own)


def main():
    folder, texts = sys.argv[1:3]
    compared = {}
    if os.path.exists(f"{texts}/timeline"):
        compared["requests"], compared["of"] = requests(folder, printed(f"{texts}/timeline"))
    for name, compare in (("latency", histograms), ("records", records), ("intervals", intervals)):
        if os.path.exists(f"{texts}/{name}"):
            compared[name] = compare(folder, printed(f"{texts}/{name}"))
    print(json.dumps(compared))


main()
