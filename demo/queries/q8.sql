-- most popular destinations, 1 to 10 years
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2008 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2007 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2006 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2005 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2004 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2003 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2002 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2001 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 2000 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
;
SELECT DestCityName, COUNT(DISTINCT OriginCityName) AS origins FROM ontime
WHERE Year BETWEEN 1999 AND 2008
GROUP BY DestCityName ORDER BY origins DESC, DestCityName LIMIT 10
