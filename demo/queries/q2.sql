-- delays over 10 minutes, per day of week
SELECT DayOfWeek, COUNT(*) AS late_flights FROM ontime
WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008
GROUP BY DayOfWeek ORDER BY late_flights DESC, DayOfWeek
