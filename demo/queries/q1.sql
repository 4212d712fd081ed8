-- flights per day of week
SELECT DayOfWeek, COUNT(*) AS flights FROM ontime
WHERE Year BETWEEN 2000 AND 2008
GROUP BY DayOfWeek ORDER BY flights DESC, DayOfWeek
