-- flights per year
SELECT Year, COUNT(*) AS flights FROM ontime GROUP BY Year ORDER BY Year
