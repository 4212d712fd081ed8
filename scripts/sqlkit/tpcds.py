"""TPC-DS: data of a generator, and query texts, that others publish; nothing of them is kept here.

Data come from Trino's port of the benchmark's generator, queries from the tests of Apache Spark, both got with Maven. Types and primary keys
are the benchmark's; secondary keys are those that somebody would make who reads sales by day and by customer.
"""

import pathlib
import re
import shutil
import subprocess
import zipfile

_TOOLS = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "tpc-ds"
_GENERATOR = (("io.trino.tpcds", "tpcds", "1.4", ""), ("io.airlift", "airline", "0.8", ""))
_TEXTS = ("org.apache.spark", "spark-sql_2.12", "3.3.0", "tests")

# Tells what columns there are: the generator knows.
_COLUMNS = """
import io.trino.tpcds.Table;
import io.trino.tpcds.column.Column;
public class Columns {
    public static void main(String[] arguments) {
        for (Table table : Table.getBaseTables())
            for (Column column : table.getColumns())
                System.out.println(String.join(" ", table.getName(), column.getName(), column.getType().getBase().name(),
                    String.valueOf(column.getType().getPrecision().orElse(0)), String.valueOf(column.getType().getScale().orElse(0))));
    }
}
"""

_PRIMARY_KEYS = {
    "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk",
    "store_sales": "ss_item_sk, ss_ticket_number", "store_returns": "sr_item_sk, sr_ticket_number",
    "catalog_sales": "cs_item_sk, cs_order_number", "catalog_returns": "cr_item_sk, cr_order_number",
    "web_sales": "ws_item_sk, ws_order_number", "web_returns": "wr_item_sk, wr_order_number"}
_KEYS = {
    "store_sales": ("ss_sold_date_sk", "ss_customer_sk"), "store_returns": ("sr_returned_date_sk",),
    "catalog_sales": ("cs_sold_date_sk", "cs_bill_customer_sk"), "catalog_returns": ("cr_returned_date_sk",),
    "web_sales": ("ws_sold_date_sk", "ws_bill_customer_sk"), "web_returns": ("wr_returned_date_sk",),
    "customer": ("c_current_addr_sk", "c_current_cdemo_sk"), "date_dim": ("d_date", "d_year")}
# What MariaDB cannot parse: FULL OUTER JOIN.
_NOT_ASKED = {"q51", "q97"}


def _fetch():
    """The generator and the texts, if they are not here yet."""
    if (_TOOLS / "texts.jar").exists():
        return
    if not shutil.which("mvn"):
        raise SystemExit("TPC-DS needs Maven and a JDK (Debian: maven)")
    _TOOLS.mkdir(parents=True, exist_ok=True)
    dependency = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
    wanted = "".join(dependency.format(*of[:3]) for of in _GENERATOR)
    (_TOOLS / "pom.xml").write_text("<project><modelVersion>4.0.0</modelVersion><groupId>pando</groupId><artifactId>tpc-ds</artifactId>"
                                    f"<version>1</version><dependencies>{wanted}</dependencies></project>")
    run = lambda *words: subprocess.run(["mvn", "-q", *words], cwd=_TOOLS, check=True)
    run("dependency:copy-dependencies", f"-DoutputDirectory={_TOOLS}/lib")
    group, artifact, version, classifier = _TEXTS
    run("dependency:copy", f"-Dartifact={group}:{artifact}:{version}:jar:{classifier}", f"-DoutputDirectory={_TOOLS}")
    (_TOOLS / f"{artifact}-{version}-{classifier}.jar").rename(_TOOLS / "texts.jar")


def _java(*words, **options):
    _fetch()
    return subprocess.run(["java", "-cp", f"{_TOOLS}/lib/*", *words], check=True, **options)


def _columns():
    """By table: name, type, precision, scale of each column."""
    source = _TOOLS / "Columns.java"
    _fetch()
    source.write_text(_COLUMNS)
    tables = {}
    for line in _java(str(source), capture_output=True, text=True).stdout.splitlines():
        table, *column = line.split()
        if table != "dbgen_version":
            tables.setdefault(table, []).append(column)
    return tables


def _type(base, precision, scale):
    return {"IDENTIFIER": "INTEGER", "DECIMAL": f"DECIMAL({precision},{scale})", "CHAR": f"CHAR({precision})",
            "VARCHAR": f"VARCHAR({precision})"}.get(base, base)


def tables():
    """CREATE TABLE by the names of tables."""
    statements = {}
    for table, columns in _columns().items():
        primary = _PRIMARY_KEYS.get(table, columns[0][0])
        inside = primary.split(", ")
        definitions = [f"{name} {_type(*kind)}{' NOT NULL' if name in inside else ''}" for name, *kind in columns]
        keys = "".join(f", KEY ({key})" for key in _KEYS.get(table, ()))
        statements[table] = f"CREATE TABLE {table} ({', '.join(definitions)}, PRIMARY KEY ({primary}){keys})"
    return statements


def files(scale, directory):
    """The files of the tables, which are made if they are missing: bars between values, \\N for none."""
    names = {table: directory / f"{table}.tbl" for table in _columns()}
    if not all(name.exists() for name in names.values()):
        _java("io.trino.tpcds.Driver", "--scale", scale, "--directory", str(directory), "--overwrite", stdout=subprocess.DEVNULL)
        for table, name in names.items():
            raw = directory / f"{table}.dat"
            with open(raw, encoding="latin1") as lines, open(name, "w", encoding="utf8") as out:
                for line in lines:
                    out.write("|".join(value or "\\N" for value in line.rstrip("\n").removesuffix("|").split("|")) + "\n")
            raw.unlink()
    return names


def _for_mariadb(text):
    text = re.sub(r"(?i)\bINTERVAL\s+(\d+)\s+DAYS?\b", r"INTERVAL \1 DAY", text)
    text = re.sub(r"(?i)\bAS\s+INT\)", "AS SIGNED)", text)
    # It has neither GROUPING() nor ROLLUP with ORDER BY.
    text = re.sub(r"(?i)\bGROUPING\((\w+)\)", r"(\1 IS NULL)", text)
    text, rollups = re.subn(r"(?i)\bGROUP BY\s+ROLLUP\s*\(([^()]*)\)", r"GROUP BY \1 WITH ROLLUP", text)
    if rollups:
        text = re.sub(r"(?is)(WITH ROLLUP)\s*ORDER BY.*$", r"\1", text)
    # The generator's column; the texts have an older name.
    return re.sub(r"\bc_last_review_date\b", "c_last_review_date_sk", text)


def queries():
    """The texts by their names, as MariaDB understands them."""
    _fetch()
    texts = {}
    with zipfile.ZipFile(_TOOLS / "texts.jar") as jar:
        for name in jar.namelist():
            found = re.fullmatch(r"tpcds/(q\d+[ab]?)\.sql", name)
            if found and found[1] not in _NOT_ASKED:
                texts[found[1]] = _for_mariadb(re.sub(r"--.*", "", jar.read(name).decode())).strip().rstrip(";")
    return dict(sorted(texts.items(), key=lambda item: (int(re.search(r"\d+", item[0])[0]), item[0])))
