-- delays over 10 minutes, per carrier
SELECT Carrier, COUNT(*) AS late_flights FROM ontime
WHERE DepDelay > 10 AND Year = 2008
GROUP BY Carrier ORDER BY late_flights DESC, Carrier
