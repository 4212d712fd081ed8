-- percentage delayed, per year
SELECT late.Year, late_flights / flights * 100 AS percentage FROM
    (SELECT Year, COUNT(*) AS late_flights FROM ontime WHERE DepDelay > 10 GROUP BY Year) AS late
    JOIN
    (SELECT Year, COUNT(*) AS flights FROM ontime GROUP BY Year) AS total
    ON late.Year = total.Year
ORDER BY late.Year
