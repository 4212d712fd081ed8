"""TPC-H, small: its eight tables with random rows of the words that its queries ask for, and its 22 queries."""

import datetime

_NATIONS = (("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
            ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
            ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
            ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1))
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_TYPES = (("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
          ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"), ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"))
_CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
_COLORS = ("almond", "forest", "green", "lemon", "navy", "rose", "sky")

TABLES = {
    "region": "r_regionkey INT PRIMARY KEY, r_name CHAR(25) NOT NULL",
    "nation": "n_nationkey INT PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INT NOT NULL",
    "supplier": "s_suppkey INT PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL,"
                " s_nationkey INT NOT NULL, s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL,"
                " s_comment VARCHAR(101) NOT NULL",
    "customer": "c_custkey INT PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL,"
                " c_nationkey INT NOT NULL, c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL,"
                " c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
    "part": "p_partkey INT PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL,"
            " p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL",
    "partsupp": "ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL,"
                " ps_supplycost DECIMAL(15,2) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "orders": "o_orderkey INT PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus CHAR(1) NOT NULL,"
              " o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL,"
              " o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL",
    "lineitem": "l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, l_linenumber INT NOT NULL,"
                " l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL,"
                " l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL,"
                " l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,"
                " l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL,"
                " PRIMARY KEY (l_orderkey, l_linenumber)",
}


def _money(random, low, high):
    return f"{random.randint(low * 100, high * 100) / 100:.2f}"


def _day(random):
    return datetime.date(1992, 1, 1) + datetime.timedelta(days=random.randrange(2400))


def _comment(random, special):
    return random.choice(("carefully bold", "quick deposits", special, "the silent pinto"))


def _people(random, count, letter, name):
    made = []
    for key in range(1, count + 1):
        nation = random.randrange(25)
        more = f"'{random.choice(_SEGMENTS)}', " if letter == "c" else ""
        special = "special packages requests" if letter == "c" else "some Customer slow Complaints"
        made.append(f"({key}, '{name}#{key:09}', 'address {random.randrange(1000)}', {nation},"
                    f" '{nation + 10}-{random.randrange(1000):03}-1234', {_money(random, -999, 9999)}, {more}"
                    f"'{_comment(random, special)}')")
    return made


def _lines(random, order, date, parts, suppliers):
    for line in range(1, random.randint(1, 7) + 1):
        ship = date + datetime.timedelta(days=random.randint(1, 121))
        commit = date + datetime.timedelta(days=random.randint(30, 90))
        receipt = ship + datetime.timedelta(days=random.randint(1, 30))
        is_old = receipt <= datetime.date(1995, 6, 17)
        status = "F" if ship <= datetime.date(1995, 6, 17) else "O"
        yield (f"({order}, {random.randint(1, parts)}, {random.randint(1, suppliers)}, {line}, {random.randint(1, 50)},"
               f" {_money(random, 900, 100000)}, 0.{random.randint(0, 10):02}, 0.{random.randint(0, 8):02},"
               f" '{random.choice('RA') if is_old else 'N'}', '{status}', '{ship}', '{commit}', '{receipt}',"
               f" '{random.choice(_INSTRUCTIONS)}', '{random.choice(_MODES)}')")


def rows(random, count):
    """The rows of each table as SQL; about `count` of the largest."""
    parts, suppliers, customers, orders = count // 20 + 5, count // 100 + 5, count // 30 + 5, count // 4
    made = {"region": [f"({key}, '{name}')" for key, name in enumerate(_REGIONS)],
            "nation": [f"({key}, '{name}', {region})" for key, (name, region) in enumerate(_NATIONS)],
            "supplier": _people(random, suppliers, "s", "Supplier"),
            "customer": _people(random, customers, "c", "Customer"),
            "part": [], "partsupp": [], "orders": [], "lineitem": []}
    for key in range(1, parts + 1):
        kind, container = (" ".join(random.choice(words) for words in of) for of in (_TYPES, _CONTAINERS))
        brand = f"{random.randint(1, 5)}{random.randint(1, 5)}"
        made["part"].append(f"({key}, '{' '.join(random.sample(_COLORS, 3))}', 'Manufacturer#{brand[0]}', 'Brand#{brand}',"
                            f" '{kind}', {random.randint(1, 50)}, '{container}')")
        for supplier in random.sample(range(1, suppliers + 1), 4):
            made["partsupp"].append(f"({key}, {supplier}, {random.randint(1, 9999)}, {_money(random, 1, 1000)})")
    for key in range(1, orders + 1):
        date = _day(random)
        made["orders"].append(f"({key}, {random.randint(1, customers)}, '{random.choice('OFP')}',"
                              f" {_money(random, 900, 300000)}, '{date}', '{random.choice(_PRIORITIES)}', 0,"
                              f" '{_comment(random, 'special heavy requests')}')")
        made["lineitem"] += _lines(random, key, date, parts, suppliers)
    return made


_REVENUE = "SUM(l_extendedprice * (1 - l_discount))"
QUERIES = {
    "Q1": "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,"
          " SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,"
          " SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty,"
          " AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order FROM lineitem"
          " WHERE l_shipdate <= DATE'1998-12-01' - INTERVAL 90 DAY GROUP BY l_returnflag, l_linestatus"
          " ORDER BY l_returnflag, l_linestatus",
    "Q2": "SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment FROM part, supplier,"
          " partsupp, nation, region WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 30"
          " AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'"
          " AND ps_supplycost = (SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region"
          " WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey"
          " AND n_regionkey = r_regionkey AND r_name = 'EUROPE') ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100",
    "Q3": f"SELECT l_orderkey, {_REVENUE} AS revenue, o_orderdate, o_shippriority FROM customer, orders, lineitem"
          " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey"
          " AND o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'"
          " GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
    "Q4": "SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= DATE'1993-07-01'"
          " AND o_orderdate < DATE'1993-07-01' + INTERVAL 3 MONTH AND EXISTS (SELECT * FROM lineitem"
          " WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority",
    "Q5": f"SELECT n_name, {_REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region"
          " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey"
          " AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey"
          " AND r_name = 'ASIA' AND o_orderdate >= DATE'1994-01-01' AND o_orderdate < DATE'1996-01-01'"
          " GROUP BY n_name ORDER BY revenue DESC, n_name",
    "Q6": "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE'1994-01-01'"
          " AND l_shipdate < DATE'1994-01-01' + INTERVAL 1 YEAR AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01"
          " AND l_quantity < 24",
    "Q7": "SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (SELECT n1.n_name AS supp_nation,"
          " n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year,"
          " l_extendedprice * (1 - l_discount) AS volume FROM supplier, lineitem, orders, customer, nation n1, nation n2"
          " WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey"
          " AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey"
          " AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))"
          " AND l_shipdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31') AS shipping"
          " GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year",
    "Q8": "SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM"
          " (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume,"
          " n2.n_name AS nation FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region"
          " WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey"
          " AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'"
          " AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'"
          " AND p_type LIKE 'ECONOMY%') AS all_nations GROUP BY o_year ORDER BY o_year",
    "Q9": "SELECT nation, o_year, SUM(amount) AS sum_profit FROM (SELECT n_name AS nation,"
          " EXTRACT(YEAR FROM o_orderdate) AS o_year,"
          " l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount"
          " FROM part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey"
          " AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey"
          " AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit GROUP BY nation, o_year"
          " ORDER BY nation, o_year DESC",
    "Q10": f"SELECT c_custkey, c_name, {_REVENUE} AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment"
           " FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"
           " AND o_orderdate >= DATE'1993-10-01' AND o_orderdate < DATE'1993-10-01' + INTERVAL 3 MONTH"
           " AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name,"
           " c_address, c_comment ORDER BY revenue DESC, c_custkey LIMIT 20",
    "Q11": "SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation"
           " WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name IN ('GERMANY', 'FRANCE', 'PERU')"
           " GROUP BY ps_partkey HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * 0.01"
           " FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey"
           " AND n_name IN ('GERMANY', 'FRANCE', 'PERU')) ORDER BY value DESC, ps_partkey",
    "Q12": "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)"
           " AS high_line_count, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1"
           " ELSE 0 END) AS low_line_count FROM orders, lineitem WHERE o_orderkey = l_orderkey"
           " AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate"
           " AND l_receiptdate >= DATE'1994-01-01' AND l_receiptdate < DATE'1994-01-01' + INTERVAL 1 YEAR"
           " GROUP BY l_shipmode ORDER BY l_shipmode",
    "Q13": "SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer"
           " LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'"
           " GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC",
    "Q14": f"SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)"
           f" / {_REVENUE} AS promo_revenue FROM lineitem, part WHERE l_partkey = p_partkey"
           " AND l_shipdate >= DATE'1995-09-01' AND l_shipdate < DATE'1995-09-01' + INTERVAL 1 MONTH",
    "Q15": f"WITH revenue AS (SELECT l_suppkey AS supplier_no, {_REVENUE} AS total_revenue FROM lineitem"
           " WHERE l_shipdate >= DATE'1996-01-01' AND l_shipdate < DATE'1996-01-01' + INTERVAL 3 MONTH GROUP BY l_suppkey)"
           " SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue"
           " WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue) ORDER BY s_suppkey",
    "Q16": "SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part"
           " WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'"
           " AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier"
           " WHERE s_comment LIKE '%Customer%Complaints%') GROUP BY p_brand, p_type, p_size"
           " ORDER BY supplier_cnt DESC, p_brand, p_type, p_size",
    "Q17": "SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey"
           " AND p_brand IN ('Brand#23', 'Brand#12', 'Brand#44') AND l_quantity < (SELECT 0.8 * AVG(l_quantity)"
           " FROM lineitem WHERE l_partkey = p_partkey)",
    "Q18": "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) FROM customer, orders, lineitem"
           " WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 200)"
           " AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate,"
           " o_totalprice ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100",
    "Q19": f"SELECT {_REVENUE} AS revenue FROM lineitem, part WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12'"
           " AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= 1 AND l_quantity <= 11"
           " AND p_size BETWEEN 1 AND 50 AND l_shipmode IN ('AIR', 'REG AIR')) OR (p_partkey = l_partkey"
           " AND p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')"
           " AND l_quantity BETWEEN 10 AND 20 AND l_shipinstruct = 'DELIVER IN PERSON')",
    "Q20": "SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp"
           " WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty >"
           " (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey"
           " AND l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1994-01-01' + INTERVAL 1 YEAR))"
           " AND s_nationkey = n_nationkey AND n_name IN ('CANADA', 'PERU', 'INDIA', 'CHINA') ORDER BY s_name",
    "Q21": "SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey"
           " AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND EXISTS"
           " (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)"
           " AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey"
           " AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey"
           " AND n_regionkey = 2 GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100",
    "Q22": "SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (SELECT SUBSTRING(c_phone, 1, 2) AS"
           " cntrycode, c_acctbal FROM customer WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')"
           " AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00"
           " AND SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')) AND NOT EXISTS"
           " (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode",
}
