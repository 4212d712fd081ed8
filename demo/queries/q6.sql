-- percentage delayed, per carrier, range of years
SELECT late.Carrier, late_flights, flights, late_flights * 100 / flights AS percentage FROM
    (SELECT Carrier, COUNT(*) AS late_flights FROM ontime
     WHERE DepDelay > 10 AND Year BETWEEN 2000 AND 2008 GROUP BY Carrier) AS late
    JOIN
    (SELECT Carrier, COUNT(*) AS flights FROM ontime
     WHERE Year BETWEEN 2000 AND 2008 GROUP BY Carrier) AS total
    ON late.Carrier = total.Carrier
ORDER BY percentage DESC, late.Carrier
