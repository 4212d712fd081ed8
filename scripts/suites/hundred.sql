-- A hundred analytic queries over TPC-H's tables, as people write them for MariaDB: no benchmark's own.
-- A01
SELECT COUNT(*), COUNT(DISTINCT l_orderkey), MIN(l_shipdate), MAX(l_receiptdate) FROM lineitem;
-- A02
SELECT l_shipmode, COUNT(*) AS n, AVG(l_quantity) AS q FROM lineitem GROUP BY l_shipmode ORDER BY n DESC, l_shipmode;
-- A03
SELECT YEAR(l_shipdate) AS y, MONTH(l_shipdate) AS m, SUM(l_extendedprice) FROM lineitem GROUP BY y, m ORDER BY y, m;
-- A04
SELECT DATE_FORMAT(o_orderdate, '%Y-%m') AS ym, SUM(o_totalprice) FROM orders GROUP BY ym ORDER BY ym;
-- A05
SELECT SUM(IF(l_receiptdate > l_commitdate, 1, 0)) / COUNT(*) AS late FROM lineitem;
-- A06
SELECT l_shipmode, AVG(l_receiptdate > l_commitdate) AS late FROM lineitem GROUP BY l_shipmode ORDER BY late, l_shipmode;
-- A07
SELECT l_returnflag, SUM(CASE WHEN l_discount > 0.05 THEN l_extendedprice * l_discount ELSE 0 END) FROM lineitem GROUP BY l_returnflag ORDER BY 1;
-- A08
SELECT DAYOFWEEK(o_orderdate) AS d, COUNT(*), SUM(o_totalprice) FROM orders GROUP BY d ORDER BY d;
-- A09
SELECT QUARTER(o_orderdate) AS q, o_orderpriority, COUNT(*) FROM orders GROUP BY q, o_orderpriority ORDER BY q, o_orderpriority;
-- A10
SELECT FLOOR(o_totalprice / 50000) AS bucket, COUNT(*) FROM orders GROUP BY bucket ORDER BY bucket;
-- A11
SELECT l_suppkey, SUM(l_quantity) AS q FROM lineitem GROUP BY l_suppkey ORDER BY q DESC, l_suppkey LIMIT 10;
-- A12
SELECT l_partkey, COUNT(*) AS n FROM lineitem GROUP BY l_partkey HAVING n > 45 ORDER BY n DESC, l_partkey LIMIT 20;
-- A13
SELECT o_custkey, COUNT(*) AS n, SUM(o_totalprice) AS s FROM orders GROUP BY o_custkey HAVING SUM(o_totalprice) > 3000000 ORDER BY s DESC, o_custkey;
-- A14
SELECT DISTINCT l_shipinstruct, l_shipmode FROM lineitem ORDER BY 1, 2;
-- A15
SELECT COUNT(DISTINCT l_partkey, l_suppkey) FROM lineitem WHERE l_quantity < 10;
-- A16
SELECT o_orderstatus, COUNT(DISTINCT o_custkey) FROM orders GROUP BY o_orderstatus ORDER BY o_orderstatus;
-- A17
SELECT * FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 10;
-- A18
SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem WHERE l_shipdate >= '1998-09-01' ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 25;
-- A19
SELECT c_name, c_acctbal FROM customer WHERE c_acctbal < 0 ORDER BY c_acctbal, c_custkey LIMIT 10;
-- A20
SELECT SUM(l_extendedprice) FROM lineitem WHERE l_shipdate BETWEEN '1995-03-01' AND '1995-03-31';
-- B01
SELECT COUNT(*) FROM orders WHERE o_comment LIKE '%special%requests%';
-- B02
SELECT COUNT(*) FROM part WHERE p_name LIKE 'green%' OR p_name LIKE '%red';
-- B03
SELECT SUBSTRING(p_type, 1, 8) AS t, COUNT(*), AVG(p_retailprice) FROM part GROUP BY t ORDER BY t LIMIT 20;
-- B04
SELECT SUBSTRING_INDEX(p_name, ' ', 1) AS word, COUNT(*) AS n FROM part GROUP BY word ORDER BY n DESC, word LIMIT 10;
-- B05
SELECT UPPER(LEFT(c_mktsegment, 3)) AS s, COUNT(*), MAX(c_acctbal) FROM customer GROUP BY s ORDER BY s;
-- B06
SELECT LENGTH(o_comment) AS len, COUNT(*) FROM orders GROUP BY len ORDER BY len;
-- B07
SELECT CONCAT(p_brand, '/', p_container) AS k, COUNT(*) FROM part GROUP BY k ORDER BY k LIMIT 30;
-- B08
SELECT COUNT(*) FROM customer WHERE c_phone REGEXP '^(13|31|23)-';
-- B09
SELECT c_nationkey, MIN(c_name), MAX(c_name) FROM customer GROUP BY c_nationkey ORDER BY c_nationkey;
-- B10
SELECT COUNT(*) FROM lineitem WHERE l_comment IS NULL OR TRIM(l_comment) = '';
-- B11
SELECT REPLACE(l_shipinstruct, ' ', '_') AS i, SUM(l_quantity) FROM lineitem GROUP BY i ORDER BY i;
-- B12
SELECT COALESCE(NULLIF(l_returnflag, 'N'), '-') AS f, COUNT(*) FROM lineitem GROUP BY f ORDER BY f;
-- C01
SELECT n_name, COUNT(*), SUM(c_acctbal) FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name ORDER BY n_name;
-- C02
SELECT c_mktsegment, SUM(o_totalprice) FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY c_mktsegment ORDER BY c_mktsegment;
-- C03
SELECT p_brand, SUM(l_quantity) AS q FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_size < 5 GROUP BY p_brand ORDER BY q DESC, p_brand LIMIT 5;
-- C04
SELECT c.c_custkey, COUNT(o.o_orderkey) AS n FROM customer c LEFT JOIN orders o ON o.o_custkey = c.c_custkey AND o.o_totalprice > 400000 GROUP BY c.c_custkey ORDER BY n DESC, c.c_custkey LIMIT 10;
-- C05
SELECT COUNT(*) FROM customer LEFT JOIN orders ON o_custkey = c_custkey WHERE o_orderkey IS NULL;
-- C06
SELECT r_name, n_name, COUNT(DISTINCT s_suppkey) FROM region JOIN nation ON n_regionkey = r_regionkey JOIN supplier ON s_nationkey = n_nationkey GROUP BY r_name, n_name ORDER BY r_name, n_name;
-- C07
SELECT COUNT(*) FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey AND a.l_linenumber < b.l_linenumber WHERE a.l_shipdate = b.l_shipdate;
-- C08
SELECT s_name, SUM(ps_availqty * ps_supplycost) AS v FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey GROUP BY s_suppkey, s_name ORDER BY v DESC, s_name LIMIT 10;
-- C09
SELECT YEAR(o_orderdate) AS y, l_returnflag, COUNT(*) FROM orders STRAIGHT_JOIN lineitem ON l_orderkey = o_orderkey WHERE o_orderpriority = '1-URGENT' GROUP BY y, l_returnflag ORDER BY y, l_returnflag;
-- C10
SELECT n1.n_name, n2.n_name, COUNT(*) FROM nation n1 CROSS JOIN nation n2 JOIN supplier ON s_nationkey = n1.n_nationkey JOIN customer ON c_nationkey = n2.n_nationkey AND c_acctbal > 9900 WHERE s_acctbal > 9900 GROUP BY n1.n_name, n2.n_name ORDER BY 3 DESC, 1, 2 LIMIT 10;
-- C11
SELECT AVG(n) FROM (SELECT l_orderkey, COUNT(*) AS n FROM lineitem GROUP BY l_orderkey) AS t;
-- C12
SELECT d.y, MAX(d.s) FROM (SELECT YEAR(o_orderdate) AS y, o_custkey, SUM(o_totalprice) AS s FROM orders GROUP BY y, o_custkey) AS d GROUP BY d.y ORDER BY d.y;
-- C13
WITH late AS (SELECT l_orderkey FROM lineitem WHERE l_receiptdate > l_commitdate + INTERVAL 60 DAY GROUP BY l_orderkey) SELECT o_orderpriority, COUNT(*) FROM orders JOIN late ON l_orderkey = o_orderkey GROUP BY o_orderpriority ORDER BY 1;
-- C14
SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity = 50);
-- C15
SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_orderdate >= '1997-01-01');
-- C16
SELECT c_mktsegment, COUNT(*) FROM customer WHERE c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0) GROUP BY c_mktsegment ORDER BY 1;
-- C17
SELECT COUNT(*) FROM lineitem l WHERE l_extendedprice > (SELECT 1.3 * AVG(l_extendedprice) FROM lineitem WHERE l_partkey = l.l_partkey);
-- C18
SELECT p_brand, (SELECT COUNT(*) FROM partsupp WHERE ps_partkey = MIN(p_partkey)) AS n FROM part GROUP BY p_brand ORDER BY p_brand LIMIT 10;
-- C19
SELECT COUNT(*) FROM part WHERE p_partkey IN (SELECT ps_partkey FROM partsupp GROUP BY ps_partkey HAVING SUM(ps_availqty) < 5000);
-- C20
SELECT o_orderpriority, SUM(o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_shipmode = 'AIR')) AS air FROM orders GROUP BY o_orderpriority ORDER BY 1;
-- D01
SELECT l_shipmode, l_returnflag, COUNT(*) FROM lineitem GROUP BY l_shipmode, l_returnflag WITH ROLLUP;
-- D02
SELECT YEAR(o_orderdate) AS y, QUARTER(o_orderdate) AS q, SUM(o_totalprice) FROM orders GROUP BY y, q WITH ROLLUP;
-- D03
SELECT l_linestatus, MAX(l_extendedprice), MIN(l_comment) FROM lineitem GROUP BY l_linestatus WITH ROLLUP;
-- D04
SELECT o_custkey, o_orderkey, ROW_NUMBER() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS r FROM orders WHERE o_custkey < 200 ORDER BY o_custkey, r;
-- D05
SELECT y, m, s, SUM(s) OVER (PARTITION BY y ORDER BY m) AS running FROM (SELECT YEAR(o_orderdate) AS y, MONTH(o_orderdate) AS m, SUM(o_totalprice) AS s FROM orders GROUP BY y, m) AS t ORDER BY y, m;
-- D06
SELECT n_name, s, RANK() OVER (ORDER BY s DESC) AS r FROM (SELECT n_name, SUM(c_acctbal) AS s FROM customer JOIN nation ON n_nationkey = c_nationkey GROUP BY n_name) AS t ORDER BY r, n_name;
-- D07
SELECT ym, s, s - LAG(s) OVER (ORDER BY ym) AS growth FROM (SELECT DATE_FORMAT(o_orderdate, '%Y%m') AS ym, SUM(o_totalprice) AS s FROM orders GROUP BY ym) AS t ORDER BY ym;
-- D08
SELECT * FROM (SELECT l_suppkey, l_orderkey, l_extendedprice, DENSE_RANK() OVER (PARTITION BY l_suppkey ORDER BY l_extendedprice DESC) AS r FROM lineitem WHERE l_suppkey <= 50) AS t WHERE r <= 2 ORDER BY l_suppkey, r, l_orderkey;
-- D09
SELECT o_orderdate, AVG(s) OVER (ORDER BY o_orderdate ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM (SELECT o_orderdate, SUM(o_totalprice) AS s FROM orders GROUP BY o_orderdate) AS t ORDER BY o_orderdate LIMIT 100;
-- D10
SELECT c_custkey, c_acctbal, c_acctbal / SUM(c_acctbal) OVER (PARTITION BY c_nationkey) AS share FROM customer WHERE c_nationkey < 3 ORDER BY share DESC, c_custkey LIMIT 20;
-- D11
SELECT NTILE(4) OVER (ORDER BY o_totalprice, o_orderkey) AS q, o_orderkey FROM orders WHERE o_orderdate = '1996-01-02' ORDER BY q, o_orderkey;
-- D12
SELECT COUNT(*), SUM(first) FROM (SELECT FIRST_VALUE(l_quantity) OVER (PARTITION BY l_orderkey ORDER BY l_linenumber) AS first FROM lineitem) AS t;
-- E01
SELECT 'c' AS what, COUNT(*) FROM customer UNION ALL SELECT 'o', COUNT(*) FROM orders UNION ALL SELECT 'l', COUNT(*) FROM lineitem;
-- E02
SELECT COUNT(*) FROM (SELECT c_nationkey AS k FROM customer UNION SELECT s_nationkey FROM supplier) AS t;
-- E03
SELECT COUNT(*) FROM (SELECT o_custkey FROM orders WHERE o_orderdate < '1993-01-01' INTERSECT SELECT o_custkey FROM orders WHERE o_orderdate > '1998-01-01') AS t;
-- E04
SELECT COUNT(*) FROM (SELECT c_custkey FROM customer EXCEPT SELECT o_custkey FROM orders) AS t;
-- E05
SELECT k, SUM(v) FROM (SELECT l_shipmode AS k, l_extendedprice AS v FROM lineitem WHERE l_quantity > 45 UNION ALL SELECT l_shipinstruct, l_extendedprice FROM lineitem WHERE l_quantity < 3) AS t GROUP BY k ORDER BY k;
-- F01
SELECT STDDEV(l_quantity), VARIANCE(l_discount), STDDEV_SAMP(l_tax) FROM lineitem;
-- F02
SELECT l_shipmode, BIT_OR(l_linenumber), BIT_AND(l_partkey), BIT_XOR(l_suppkey) FROM lineitem GROUP BY l_shipmode ORDER BY 1;
-- F03
SELECT o_orderpriority, GROUP_CONCAT(DISTINCT o_orderstatus ORDER BY o_orderstatus SEPARATOR ',') FROM orders GROUP BY o_orderpriority ORDER BY 1;
-- F04
SELECT n_name, GROUP_CONCAT(s_name ORDER BY s_acctbal DESC, s_name SEPARATOR '; ') FROM supplier JOIN nation ON n_nationkey = s_nationkey WHERE s_acctbal > 9000 GROUP BY n_name ORDER BY n_name;
-- F05
SELECT SUM(l_extendedprice * 1e0), AVG(l_tax + 0e0) FROM lineitem WHERE l_linenumber = 1;
-- F06
SELECT ROUND(l_discount * 100) AS d, AVG(l_extendedprice * (1 - l_discount)) FROM lineitem GROUP BY d ORDER BY d;
-- F07
SELECT MOD(l_orderkey, 10) AS k, SUM(l_quantity) DIV COUNT(*) FROM lineitem GROUP BY k ORDER BY k;
-- F08
SELECT ABS(c_acctbal) DIV 1000 AS k, COUNT(*), SUM(SIGN(c_acctbal)) FROM customer GROUP BY k ORDER BY k;
-- F09
SELECT GREATEST(l_shipdate, l_commitdate) AS d, COUNT(*) FROM lineitem GROUP BY d ORDER BY d LIMIT 10;
-- F10
SELECT DATEDIFF(l_receiptdate, l_shipdate) AS days, COUNT(*) FROM lineitem GROUP BY days ORDER BY days;
-- F11
SELECT TIMESTAMPDIFF(MONTH, o_orderdate, '1998-12-31') AS m, COUNT(*) FROM orders GROUP BY m ORDER BY m;
-- F12
SELECT LAST_DAY(o_orderdate) AS e, SUM(o_totalprice) FROM orders GROUP BY e ORDER BY e LIMIT 24;
-- F13
SELECT WEEK(l_shipdate, 3) AS w, COUNT(*) FROM lineitem WHERE YEAR(l_shipdate) = 1996 GROUP BY w ORDER BY w;
-- F14
SELECT CASE WHEN o_totalprice < 50000 THEN 'small' WHEN o_totalprice < 200000 THEN 'middle' ELSE 'large' END AS class, COUNT(*) FROM orders GROUP BY class ORDER BY class;
-- F15
SELECT COUNT(*) FROM lineitem WHERE l_shipmode IN ('AIR', 'REG AIR') AND NOT (l_quantity BETWEEN 10 AND 40) AND l_tax <> 0.02;
-- F16
SELECT COUNT(*) FROM lineitem WHERE l_shipdate + INTERVAL 1 MONTH < l_receiptdate;
-- F17
SELECT (l_orderkey, l_linenumber) IN ((1, 1), (2, 1), (3, 2)) AS k, COUNT(*) FROM lineitem GROUP BY k ORDER BY k;
-- F18
SELECT o_orderkey FROM orders WHERE o_orderkey BETWEEN 1000 AND 2000 AND o_totalprice > 300000 ORDER BY o_orderkey;
-- F19
SELECT CAST(o_totalprice AS SIGNED) MOD 7 AS k, COUNT(*) FROM orders GROUP BY k ORDER BY k;
-- F20
SELECT o_clerk, COUNT(*) AS n FROM orders GROUP BY o_clerk ORDER BY n DESC, o_clerk LIMIT 5;
-- G01
SELECT MAX(l_extendedprice), MIN(l_extendedprice) FROM lineitem WHERE l_shipmode = 'TRUCK';
-- G02
SELECT l_orderkey, SUM(l_quantity) AS q FROM lineitem GROUP BY l_orderkey ORDER BY q DESC, l_orderkey LIMIT 5;
-- G03
SELECT COUNT(*) FROM lineitem JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey JOIN nation ON n_nationkey = c_nationkey JOIN region ON r_regionkey = n_regionkey WHERE r_name = 'EUROPE' AND l_shipdate < '1994-01-01';
-- G04
SELECT p_container, p_size, AVG(l_extendedprice / l_quantity) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_brand = 'Brand#23' GROUP BY p_container, p_size ORDER BY p_container, p_size LIMIT 40;
-- G05
SELECT o_custkey, MAX(o_orderdate), DATEDIFF('1998-12-31', MAX(o_orderdate)) AS idle FROM orders GROUP BY o_custkey ORDER BY idle DESC, o_custkey LIMIT 15;
-- G06
SELECT ps_suppkey, SUM(ps_supplycost * ps_availqty) AS v FROM partsupp GROUP BY ps_suppkey HAVING v > (SELECT AVG(x) FROM (SELECT SUM(ps_supplycost * ps_availqty) AS x FROM partsupp GROUP BY ps_suppkey) AS t) * 1.2 ORDER BY v DESC, ps_suppkey LIMIT 10;
-- G07
SELECT l_linenumber, COUNT(*), SUM(l_extendedprice), SUM(l_extendedprice * l_discount), AVG(l_tax), MIN(l_shipdate), MAX(l_comment) FROM lineitem GROUP BY l_linenumber ORDER BY l_linenumber;
-- G08
SELECT c_nationkey, c_mktsegment, COUNT(*), AVG(c_acctbal) FROM customer GROUP BY c_nationkey, c_mktsegment HAVING COUNT(*) > 10 AND AVG(c_acctbal) > 4500 ORDER BY 1, 2;
-- G09
SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT * FROM lineitem l WHERE l.l_orderkey = o.o_orderkey AND l.l_returnflag = 'R') AND o_orderstatus = 'F';
-- G10
SELECT l_suppkey MOD 100 AS k, l_shipmode, COUNT(*) FROM lineitem GROUP BY k, l_shipmode ORDER BY k, l_shipmode;
-- G11
SELECT COUNT(*) FROM customer a JOIN customer b ON a.c_nationkey = b.c_nationkey AND a.c_acctbal = b.c_acctbal AND a.c_custkey < b.c_custkey;
