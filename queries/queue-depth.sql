-- How does latency grow with the queue depth of a connection?
SELECT kind, queue_depth, COUNT(*) AS how_many, AVG(whole_ns) AS mean_ns, MIN(whole_ns) AS shortest_ns, MAX(whole_ns) AS longest_ns
FROM requests
WHERE finished AND excluded IS NULL AND part_of IS NULL AND queue_depth IS NOT NULL
GROUP BY kind, queue_depth
ORDER BY kind, queue_depth
