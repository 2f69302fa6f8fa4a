"""What DuckDB finds in the tables that `dptrace serve` wrote, as a JSON object."""

import json
import sys

import duckdb


def table(name):
    return f"read_parquet('{sys.argv[1]}/{name}/*/*/*/*.parquet', hive_partitioning=true, hive_types_autocast=false)"


def all_of(query):
    done = duckdb.sql(query)
    return [dict(zip(done.columns, row)) for row in done.fetchall()]


found = {
    "stages": all_of(
        f"SELECT stage, CAST(SUM(count) AS BIGINT) AS count, CAST(SUM(sum_ns) AS BIGINT) AS sum_ns, MIN(kind) AS kind, "
        f"MAX(above_ns) AS above_ns, MAX(up_to_ns) AS up_to_ns FROM {table('stage_histograms')} GROUP BY stage"
    ),
    "wrong": all_of(
        f"SELECT * FROM {table('stage_histograms')} WHERE sum_ns NOT BETWEEN above_ns * count AND up_to_ns * count OR count < 1 "
        "OR minute_ns % 60000000000 <> 0"
    ),
    "threads": all_of(
        f"SELECT CAST(SUM(total_ns) AS BIGINT) AS total_ns, COUNT(DISTINCT tid) AS threads, LIST(DISTINCT pid) AS pids "
        f"FROM {table('thread_budgets')}"
    ),
    "requests": all_of(
        f"SELECT COUNT(*) AS rows, COUNT(DISTINCT request) AS numbers, MAX(whole_ns) AS longest_ns, "
        f"LIST(DISTINCT kind) AS kinds, LIST(DISTINCT hostname) AS hosts FROM {table('requests')}"
    ),
    "torn": all_of(
        f"SELECT request, whole_ns, stages, SUM(stage_ns) AS together FROM {table('requests')} AS requests JOIN "
        f"{table('request_stages')} AS parts USING (request, capture) GROUP BY request, whole_ns, stages "
        "HAVING ABS(whole_ns - SUM(stage_ns)) > stages OR stages <> COUNT(*)"
    ),
    "folders": all_of(f"SELECT DISTINCT host FROM {table('stage_histograms')}"),
}
print(json.dumps(found))
