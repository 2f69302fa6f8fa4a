-- The tables of dptrace export as views of Spark, in the folder that has them: spark-sql -i setup/spark.sql
CREATE OR REPLACE TEMPORARY VIEW requests USING parquet OPTIONS (path 'requests', mergeSchema 'true');
CREATE OR REPLACE TEMPORARY VIEW request_stages USING parquet OPTIONS (path 'request_stages', mergeSchema 'true');
CREATE OR REPLACE TEMPORARY VIEW stage_histograms USING parquet OPTIONS (path 'stage_histograms', mergeSchema 'true');
CREATE OR REPLACE TEMPORARY VIEW thread_budgets USING parquet OPTIONS (path 'thread_budgets', mergeSchema 'true');
CREATE OR REPLACE TEMPORARY VIEW kernel_intervals USING parquet OPTIONS (path 'kernel_intervals', mergeSchema 'true');
CREATE OR REPLACE TEMPORARY VIEW records USING parquet OPTIONS (path 'records', mergeSchema 'true');
