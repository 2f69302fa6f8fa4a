"""Runs the queries of `queries/` on DuckDB and ClickHouse, over the tables of a folder, and compares their results.

Prints a JSON object: for each query the rows of its result. With a master of Spark as third argument, Spark is compared, too.
"""

import glob
import json
import math
import os
import sys
import time


def of_duckdb(setup):
    import duckdb

    database = duckdb.connect()
    database.execute("SET threads = 2")
    database.execute(setup)

    def run(query):
        done = database.execute(query)
        names = [column[0] for column in done.description]
        return [dict(zip(names, row)) for row in done.fetchall()]

    return run


def of_clickhouse(setup):
    from chdb import session

    database = session.Session()
    for statement in setup.split(";"):
        if statement.strip():
            database.query(statement)

    def run(query):
        settings = " SETTINGS output_format_json_quote_64bit_integers = 0, max_threads = 2"
        text = str(database.query(query + settings, "JSON"))
        return json.loads(text)["data"]

    return run


def of_spark(setup, master):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(master).appName("dptrace").getOrCreate()
    for statement in setup.split(";"):
        if statement.strip():
            session.sql(statement)
    return lambda query: [row.asDict() for row in session.sql(query).collect()]


def number(value):
    return float(value) if value is not None and not isinstance(value, (str, bool)) else value


def is_same(one, other):
    one, other = number(one), number(other)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return one == other


def compare(name, engine, rows, expected):
    assert len(rows) == len(expected), (name, engine, len(rows), len(expected))
    for row, wanted in zip(rows, expected):
        assert list(row) == list(wanted), (name, engine, list(row), list(wanted))
        different = [column for column in row if not is_same(row[column], wanted[column])]
        assert not different, (name, engine, different, row, wanted)


def plain(value):
    return value if value is None or isinstance(value, (str, bool, int, float)) else float(value)


def main():
    tables, queries = (os.path.abspath(path) for path in sys.argv[1:3])
    os.chdir(tables)
    kinds = {"duckdb": of_duckdb, "clickhouse": of_clickhouse}
    if len(sys.argv) > 3:
        kinds["spark"] = lambda setup: of_spark(setup, sys.argv[3])
    engines = {}
    for engine, begin in kinds.items():
        with open(f"{queries}/setup/{engine}.sql", encoding="utf-8") as setup:
            lines = [line for line in setup if not line.startswith("--")]
        engines[engine] = begin("".join(lines))
    results = {}
    for path in sorted(glob.glob(f"{queries}/*.sql")):
        name = os.path.basename(path).removesuffix(".sql")
        with open(path, encoding="utf-8") as text:
            query = text.read()
        assert query.startswith("-- ") and "?" in query.split("\n", 1)[0], f"{name} begins with its question"
        for engine, run in engines.items():
            begun = time.monotonic()
            rows = run(query)
            print(f"{name} {engine} {len(rows)} rows {time.monotonic() - begun:.2f} s", file=sys.stderr)
            compare(name, engine, rows, results.setdefault(name, rows))
    print(json.dumps({name: [{c: plain(v) for c, v in row.items()} for row in rows] for name, rows in results.items()}))


main()
