-- When was a thread that serves requests kept from its CPU for longest at once, and which requests were running then?
WITH ranked AS (
    SELECT hostname, capture, start_ns, interval_ns, thread, lcore, activity, caused_by,
        ROW_NUMBER() OVER (ORDER BY interval_ns DESC, hostname, capture, start_ns, tid) AS place
    FROM kernel_intervals
    WHERE taken
),
hit AS (
    SELECT place, COUNT(*) AS requests_then, MAX(whole_ns) AS slowest_then_ns
    FROM ranked JOIN requests
        ON ranked.hostname = requests.hostname AND ranked.capture = requests.capture AND ranked.lcore = requests.lcore
    WHERE place <= 20 AND requests.start_ns < ranked.start_ns + interval_ns
        AND requests.start_ns + whole_ns > ranked.start_ns
    GROUP BY place
)
SELECT ranked.place AS absence, hostname, capture, start_ns, interval_ns, thread, lcore, activity, caused_by,
    COALESCE(requests_then, 0) AS requests_meanwhile, COALESCE(slowest_then_ns, 0) AS slowest_meanwhile_ns
FROM ranked LEFT JOIN hit ON ranked.place = hit.place
WHERE ranked.place <= 20
ORDER BY absence
