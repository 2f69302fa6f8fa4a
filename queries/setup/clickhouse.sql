-- The tables of dptrace export as views of ClickHouse, in the folder that has them: clickhouse local --path .clickhouse
CREATE OR REPLACE VIEW requests AS SELECT * FROM file('requests/**/*.parquet', Parquet);
CREATE OR REPLACE VIEW request_stages AS SELECT * FROM file('request_stages/**/*.parquet', Parquet);
CREATE OR REPLACE VIEW stage_histograms AS SELECT * FROM file('stage_histograms/**/*.parquet', Parquet);
CREATE OR REPLACE VIEW thread_budgets AS SELECT * FROM file('thread_budgets/**/*.parquet', Parquet);
CREATE OR REPLACE VIEW kernel_intervals AS SELECT * FROM file('kernel_intervals/**/*.parquet', Parquet);
CREATE OR REPLACE VIEW records AS SELECT * FROM file('records/**/*.parquet', Parquet);
