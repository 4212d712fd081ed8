-- delays over 10 minutes, per origin airport
SELECT Origin, COUNT(*) AS late_flights FROM ontime
WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008
GROUP BY Origin ORDER BY late_flights DESC, Origin LIMIT 10
