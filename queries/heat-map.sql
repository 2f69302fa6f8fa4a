-- When were requests slow: how many took how long in each minute? A cell is a minute and a doubling of the time.
SELECT minute_ns, POWER(2, CEIL(LOG2(up_to_ns))) AS up_to_power_ns, SUM(count) AS requests
FROM stage_histograms
WHERE stage = 'whole' AND up_to_ns < 68719476736
GROUP BY minute_ns, POWER(2, CEIL(LOG2(up_to_ns)))
ORDER BY minute_ns, up_to_power_ns
