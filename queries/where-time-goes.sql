-- Which stages take the time of all requests together, by subsystem?
WITH stages_of AS (
    SELECT subnqn, stage, SUM(sum_ns) AS took_ns, SUM(count) AS how_many
    FROM stage_histograms
    WHERE stage <> 'whole'
    GROUP BY subnqn, stage
)
SELECT subnqn, stage, took_ns, how_many, took_ns / how_many AS mean_ns,
    100.0 * took_ns / SUM(took_ns) OVER (PARTITION BY subnqn) AS percent_of_subsystem
FROM stages_of
ORDER BY took_ns DESC, subnqn, stage
LIMIT 40
