-- The ten queries of the air-traffic benchmark, and q8 over 1, 2, 3, 4 and 10 years. A line "-- name" begins each.
-- Every order is total and no average is left to rounding, so that answers can be compared byte by byte.

-- q0, average flights per month
SELECT AVG(flights) FROM (SELECT Year, Month, COUNT(*) AS flights FROM ontime GROUP BY Year, Month) AS months;
-- q1, flights per weekday
SELECT DayOfWeek, COUNT(*) AS flights FROM ontime WHERE Year BETWEEN 2000 AND 2008
GROUP BY DayOfWeek ORDER BY flights DESC, DayOfWeek;
-- q2, late flights per weekday
SELECT DayOfWeek, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008
GROUP BY DayOfWeek ORDER BY flights DESC, DayOfWeek;
-- q3, late flights per airport
SELECT Origin, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008
GROUP BY Origin ORDER BY flights DESC, Origin LIMIT 10;
-- q4, late flights per airline, 2007
SELECT Carrier, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 AND Year = 2007
GROUP BY Carrier ORDER BY flights DESC, Carrier;
-- q5, share of late flights per airline, 2007
SELECT late.Carrier, late.flights, total.flights AS of_all, late.flights * 1000 DIV total.flights AS per_mille FROM
(SELECT Carrier, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 AND Year = 2007 GROUP BY Carrier) AS late
JOIN (SELECT Carrier, COUNT(*) AS flights FROM ontime WHERE Year = 2007 GROUP BY Carrier) AS total
ON late.Carrier = total.Carrier ORDER BY per_mille DESC, late.Carrier;
-- q6, share of late flights per airline, 2000 to 2008
SELECT late.Carrier, late.flights, total.flights AS of_all, late.flights * 1000 DIV total.flights AS per_mille FROM
(SELECT Carrier, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008
GROUP BY Carrier) AS late
JOIN (SELECT Carrier, COUNT(*) AS flights FROM ontime WHERE Year BETWEEN 2000 AND 2008 GROUP BY Carrier) AS total
ON late.Carrier = total.Carrier ORDER BY per_mille DESC, late.Carrier;
-- q7, share of late flights per year
SELECT late.Year, late.flights * 1000 DIV total.flights AS per_mille FROM
(SELECT Year, COUNT(*) AS flights FROM ontime WHERE DepDelay > 10 GROUP BY Year) AS late
JOIN (SELECT Year, COUNT(*) AS flights FROM ontime GROUP BY Year) AS total
ON late.Year = total.Year ORDER BY late.Year;
-- q8, destinations by origins, 1 year
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime WHERE Year BETWEEN 2008 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10;
-- q8, destinations by origins, 2 years
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime WHERE Year BETWEEN 2007 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10;
-- q8, destinations by origins, 3 years
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime WHERE Year BETWEEN 2006 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10;
-- q8, destinations by origins, 4 years
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime WHERE Year BETWEEN 2005 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10;
-- q8, destinations by origins, 10 years
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime WHERE Year BETWEEN 1999 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10;
-- q9, flights per year
SELECT Year, COUNT(*) AS flights FROM ontime GROUP BY Year ORDER BY Year;
