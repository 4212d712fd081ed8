"""The star schema benchmark, small: its five tables with random rows, and its 13 queries."""

_REGIONS = {
    "AFRICA": ("ALGERIA", "KENYA"), "AMERICA": ("UNITED STATES", "CANADA", "BRAZIL"), "ASIA": ("CHINA", "JAPAN", "INDIA"),
    "EUROPE": ("UNITED KINGDOM", "FRANCE", "GERMANY"), "MIDDLE EAST": ("EGYPT", "IRAN"),
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

TABLES = {
    "dates": "d_datekey INT PRIMARY KEY, d_year SMALLINT NOT NULL, d_yearmonthnum INT NOT NULL,"
             " d_yearmonth CHAR(7) NOT NULL, d_weeknuminyear TINYINT NOT NULL",
    "customer": "c_custkey INT PRIMARY KEY, c_city CHAR(10) NOT NULL, c_nation VARCHAR(15) NOT NULL,"
                " c_region VARCHAR(12) NOT NULL",
    "supplier": "s_suppkey INT PRIMARY KEY, s_city CHAR(10) NOT NULL, s_nation VARCHAR(15) NOT NULL,"
                " s_region VARCHAR(12) NOT NULL",
    "part": "p_partkey INT PRIMARY KEY, p_mfgr CHAR(6) NOT NULL, p_category CHAR(7) NOT NULL, p_brand1 CHAR(9) NOT NULL",
    "lineorder": "lo_orderkey INT NOT NULL, lo_linenumber TINYINT NOT NULL, lo_custkey INT NOT NULL,"
                 " lo_partkey INT NOT NULL, lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL,"
                 " lo_quantity TINYINT NOT NULL, lo_extendedprice INT NOT NULL, lo_discount TINYINT NOT NULL,"
                 " lo_revenue INT NOT NULL, lo_supplycost INT NOT NULL, PRIMARY KEY (lo_orderkey, lo_linenumber)",
}


def _place(random):
    region = random.choice(sorted(_REGIONS))
    nation = random.choice(_REGIONS[region])
    return f"'{nation[:9]:9}{random.randrange(10)}', '{nation}', '{region}'"


def rows(random, count):
    """The rows of each table as SQL; `count` of the largest."""
    days = [(year, month, day) for year in range(1992, 1999) for month in range(1, 13) for day in range(1, 29)]
    keys = [year * 10000 + month * 100 + day for year, month, day in days]
    made = {"dates": [f"({key}, {y}, {y * 100 + m}, '{_MONTHS[m - 1]}{y}', {(m - 1) * 4 + d // 7 + 1})"
                      for key, (y, m, d) in zip(keys, days)]}
    made["customer"] = [f"({key}, {_place(random)})" for key in range(1, count // 100 + 2)]
    made["supplier"] = [f"({key}, {_place(random)})" for key in range(1, count // 300 + 2)]
    made["part"] = []
    for key in range(1, count // 50 + 2):
        mfgr, category = random.randint(1, 5), random.randint(1, 5)
        brand = f"MFGR#{mfgr}{category}{random.randint(1, 40)}"
        made["part"].append(f"({key}, 'MFGR#{mfgr}', 'MFGR#{mfgr}{category}', '{brand}')")
    made["lineorder"] = [
        f"({number // 4 + 1}, {number % 4 + 1}, {random.randint(1, len(made['customer']))},"
        f" {random.randint(1, len(made['part']))}, {random.randint(1, len(made['supplier']))}, {random.choice(keys)},"
        f" {random.randint(1, 50)}, {random.randint(90000, 10000000)}, {random.randint(0, 10)},"
        f" {random.randint(81000, 10000000)}, {random.randint(1000, 120000)})" for number in range(count)]
    return made


_FLIGHT_2 = ("SELECT SUM(lo_revenue), d_year, p_brand1 FROM lineorder, dates, part, supplier WHERE lo_orderdate = d_datekey"
             " AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND {} GROUP BY d_year, p_brand1"
             " ORDER BY d_year, p_brand1")
_FLIGHT_3 = ("SELECT {0}, {1}, d_year, SUM(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates"
             " WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND {2}"
             " GROUP BY {0}, {1}, d_year ORDER BY d_year ASC, revenue DESC, {0}, {1}")
_CITIES = ("(c_city = 'UNITED KI1' OR c_city = 'UNITED KI5') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5')")
_FLIGHT_1 = ("SELECT SUM(lo_extendedprice * lo_discount) AS revenue FROM lineorder, dates WHERE lo_orderdate = d_datekey"
             " AND {}")
_FLIGHT_4 = ("SELECT {0}, SUM(lo_revenue - lo_supplycost) AS profit FROM dates, customer, supplier, part, lineorder"
             " WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey"
             " AND lo_orderdate = d_datekey AND {1} GROUP BY {0} ORDER BY {0}")

QUERIES = {
    "Q1.1": _FLIGHT_1.format("d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25"),
    "Q1.2": _FLIGHT_1.format("d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35"),
    "Q1.3": _FLIGHT_1.format("d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7"
                             " AND lo_quantity BETWEEN 26 AND 35"),
    "Q2.1": _FLIGHT_2.format("p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "Q2.2": _FLIGHT_2.format("p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'"),
    "Q2.3": _FLIGHT_2.format("p_brand1 = 'MFGR#2221' AND s_region = 'EUROPE'"),
    "Q3.1": _FLIGHT_3.format("c_nation", "s_nation", "c_region = 'ASIA' AND s_region = 'ASIA' AND d_year >= 1992"
                             " AND d_year <= 1997"),
    "Q3.2": _FLIGHT_3.format("c_city", "s_city", "c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES'"
                             " AND d_year >= 1992 AND d_year <= 1997"),
    "Q3.3": _FLIGHT_3.format("c_city", "s_city", _CITIES + " AND d_year >= 1992 AND d_year <= 1997"),
    "Q3.4": _FLIGHT_3.format("c_city", "s_city", _CITIES + " AND d_yearmonth = 'Dec1997'"),
    "Q4.1": _FLIGHT_4.format("d_year, c_nation", "c_region = 'AMERICA' AND s_region = 'AMERICA'"
                             " AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"),
    "Q4.2": _FLIGHT_4.format("d_year, s_nation, p_category", "c_region = 'AMERICA' AND s_region = 'AMERICA'"
                             " AND (d_year = 1997 OR d_year = 1998) AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"),
    "Q4.3": _FLIGHT_4.format("d_year, s_city, p_brand1", "c_region = 'AMERICA' AND s_nation = 'UNITED STATES'"
                             " AND (d_year = 1997 OR d_year = 1998) AND p_category = 'MFGR#14'"),
}
