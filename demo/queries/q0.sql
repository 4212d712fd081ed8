-- average flights per month
SELECT AVG(flights) FROM
    (SELECT Year, Month, COUNT(*) AS flights FROM ontime GROUP BY Year, Month) AS months
