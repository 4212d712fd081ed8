-- percentage delayed, per carrier (a join)
SELECT late.Carrier, late_flights, flights, late_flights * 100 / flights AS percentage FROM
    (SELECT Carrier, COUNT(*) AS late_flights FROM ontime
     WHERE DepDelay > 10 AND Year = 2008 GROUP BY Carrier) AS late
    JOIN
    (SELECT Carrier, COUNT(*) AS flights FROM ontime
     WHERE Year = 2008 GROUP BY Carrier) AS total
    ON late.Carrier = total.Carrier
ORDER BY percentage DESC, late.Carrier
