-- The tables of dptrace export as views of DuckDB, in the folder that has them: duckdb -init setup/duckdb.sql
CREATE OR REPLACE VIEW requests AS SELECT * FROM read_parquet('requests/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW request_stages AS SELECT * FROM read_parquet('request_stages/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW stage_histograms AS SELECT * FROM read_parquet('stage_histograms/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW thread_budgets AS SELECT * FROM read_parquet('thread_budgets/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW kernel_intervals AS SELECT * FROM read_parquet('kernel_intervals/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW records AS SELECT * FROM read_parquet('records/*/*/*/*.parquet', hive_partitioning = true, union_by_name = true);
