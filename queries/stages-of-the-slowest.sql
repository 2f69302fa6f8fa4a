-- Where was the time of the ten slowest requests, stage by stage, and who had the CPU?
WITH ranked AS (
    SELECT hostname, capture, request, whole_ns,
        ROW_NUMBER() OVER (ORDER BY whole_ns DESC, hostname, capture, request) AS place
    FROM requests
    WHERE finished AND excluded IS NULL AND part_of IS NULL
)
SELECT place, whole_ns, stage_no, from_point, to_point, stage_ns, late_least_ns, late_most_ns, late_by
FROM ranked JOIN request_stages
    ON ranked.hostname = request_stages.hostname AND ranked.capture = request_stages.capture
    AND ranked.request = request_stages.request
WHERE place <= 10
ORDER BY place, stage_no
