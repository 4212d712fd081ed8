-- The star schema benchmark's tables, with their primary keys and the fact table's keys of its dimensions.
CREATE TABLE dates (d_datekey INT PRIMARY KEY, d_date CHAR(10) NOT NULL, d_dayofweek VARCHAR(9) NOT NULL,
  d_month VARCHAR(9) NOT NULL, d_year SMALLINT NOT NULL, d_yearmonthnum INT NOT NULL, d_yearmonth CHAR(7) NOT NULL,
  d_weeknuminyear TINYINT NOT NULL);
CREATE TABLE customer (c_custkey INT PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(25) NOT NULL,
  c_city CHAR(10) NOT NULL, c_nation VARCHAR(15) NOT NULL, c_region VARCHAR(12) NOT NULL, c_phone CHAR(15) NOT NULL,
  c_mktsegment CHAR(10) NOT NULL);
CREATE TABLE supplier (s_suppkey INT PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(25) NOT NULL,
  s_city CHAR(10) NOT NULL, s_nation VARCHAR(15) NOT NULL, s_region VARCHAR(12) NOT NULL, s_phone CHAR(15) NOT NULL);
CREATE TABLE part (p_partkey INT PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(6) NOT NULL, p_category CHAR(7) NOT NULL,
  p_brand1 CHAR(9) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size TINYINT NOT NULL, p_container CHAR(10) NOT NULL);
CREATE TABLE lineorder (lo_orderkey INT NOT NULL, lo_linenumber TINYINT NOT NULL, lo_custkey INT NOT NULL,
  lo_partkey INT NOT NULL, lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL, lo_orderpriority CHAR(15) NOT NULL,
  lo_quantity TINYINT NOT NULL, lo_extendedprice INT NOT NULL, lo_ordtotalprice INT NOT NULL, lo_discount TINYINT NOT NULL,
  lo_revenue INT NOT NULL, lo_supplycost INT NOT NULL, lo_tax TINYINT NOT NULL, lo_commitdate INT NOT NULL,
  lo_shipmode CHAR(10) NOT NULL, PRIMARY KEY (lo_orderkey, lo_linenumber), KEY (lo_custkey), KEY (lo_partkey),
  KEY (lo_suppkey), KEY (lo_orderdate));
