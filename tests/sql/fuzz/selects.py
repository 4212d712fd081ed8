"""Random queries."""

from fuzz import values
from fuzz.expressions import Expressions

_ORDERS = ("", "", " DESC")


class Selects:
    """Makes SELECTs over some tables."""

    def __init__(self, rng, tables, is_large=False):
        self.rng, self.tables, self.is_large = rng, list(tables), is_large

    def any(self):
        """(query, whether its rows have an order)."""
        kinds = (self.rows, self.rows, self.ordered, self.aggregate, self.aggregate, self.groups, self.groups, self.join, self.join,
                 self.join_groups, self.subquery, self.set_operation, self.window, self.recursive, self.distinct, self.monster,
                 self.extremes, self.locking, self.paged)
        if self.is_large:
            kinds = (self.rows, self.aggregate, self.aggregate, self.groups, self.groups, self.extremes, self.ordered, self.paged, self.distinct)
        return self.rng.choice(kinds)()

    def _table(self):
        table = self.rng.choice(self.tables)
        return table, Expressions(self.rng, table.scope("a"))

    def _from(self, table, alias="a"):
        rng, hint = self.rng, ""
        keys = [key for key in table.keys if not key.startswith("DB_")]
        if keys and rng.random() < 0.25:
            hint = f" {rng.choice(('FORCE', 'IGNORE', 'USE'))} INDEX ({rng.choice(keys)})"
        period = ""
        if table.is_versioned and rng.random() < 0.4:
            period = " FOR SYSTEM_TIME ALL"
        return f"{table.name}{period} AS {alias}{hint}"

    # --- one table ------------------------------------------------------------------------

    def rows(self):
        """Rows of a table."""
        table, make = self._table()
        outputs = "*" if self.rng.random() < 0.5 else ", ".join(make.any(3) for _ in range(self.rng.randint(1, 4)))
        return f"SELECT {outputs} FROM {self._from(table)}{make.where(3)}", False

    def ordered(self):
        """Rows in an order that leaves no choice, at times cut off."""
        table, make = self._table()
        order = f"{make.column()[0]}{self.rng.choice(_ORDERS)}, " if self.rng.random() < 0.7 else ""
        limit = self.rng.choice(("", "", f" LIMIT {self.rng.randint(0, 9)}", f" LIMIT {self.rng.randint(0, 5)} OFFSET 3"))
        first = f"HEX(WEIGHT_STRING({order.partition(',')[0].replace(' DESC', '')}))" if order else "1"
        # Texts that are equal but not the same come in any order, so the first column is shown by its weight.
        return (f"SELECT {first}, {table.order('a')} FROM {self._from(table)}{make.where()} ORDER BY {order}{table.order('a')}{limit}",
                True)

    def paged(self):
        """A range by a key, from its end, cut off."""
        table, make = self._table()
        keys = [columns for columns, _ in table.keys.values()]
        if not keys:
            return self.rows()
        columns = self.rng.choice(keys)
        down = self.rng.choice(_ORDERS)
        order = ", ".join(f"a.{column}{down}" for column in columns)
        shown = ", ".join(f"HEX(WEIGHT_STRING(a.{column}))" for column in columns)
        return f"SELECT {shown} FROM {self._from(table)}{make.where(1)} ORDER BY {order} LIMIT {self.rng.randint(0, 20)}", True

    def extremes(self):
        """MIN, MAX, COUNT: often answered by a key."""
        table, make = self._table()
        column = make.column()[0]
        outputs = self.rng.sample((f"HEX(WEIGHT_STRING(MIN({column})))", f"HEX(WEIGHT_STRING(MAX({column})))", "COUNT(*)",
                                   f"COUNT({column})", f"COUNT(DISTINCT {column})"), self.rng.randint(1, 3))
        return f"SELECT {', '.join(outputs)} FROM {self._from(table)}{make.where(1)}", True

    def locking(self):
        """A locking read."""
        table, make = self._table()
        how = self.rng.choice((" FOR UPDATE", " LOCK IN SHARE MODE"))
        outputs = self.rng.choice(("*", "COUNT(*)", "COUNT(*), SUM(CAST(1 AS SIGNED))"))
        return f"SELECT {outputs} FROM {self._from(table)}{make.where()}{how}", False

    def distinct(self):
        """DISTINCT values."""
        table, make = self._table()
        count = self.rng.randint(1, 3)
        outputs = ", ".join(self._shown(make.any(1)) for _ in range(count))
        return f"SELECT DISTINCT {outputs} FROM {self._from(table)}{make.where()}", False

    def monster(self):
        """A query with a very long or deep expression."""
        table, make = self._table()
        number = make.monster()
        return self.rng.choice((
            lambda: f"SELECT SUM({number}), COUNT(*) FROM {self._from(table)}{make.where(1)}",
            lambda: f"SELECT {number} FROM {self._from(table)}",
            lambda: f"SELECT COUNT(*) FROM {self._from(table)} WHERE {number}",
            lambda: f"SELECT * FROM {self._from(table)} WHERE {number} = 1",
            lambda: f"SELECT {number}, COUNT(*) FROM {self._from(table)} GROUP BY 1",
            lambda: f"SELECT COUNT(*) FROM {self._from(table)} HAVING SUM({number}) > 1",
        ))(), False

    def window(self):
        """Window functions."""
        table, make = self._table()
        call = self.rng.choice(("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "COUNT(*)", f"SUM({make.column('int', 'dec') and make.column('int', 'dec')[0] or 1})",
                                f"LAG({make.number(1)})", f"FIRST_VALUE({make.number(1)})", "NTILE(3)"))
        partition = f"PARTITION BY {make.column()[0]} " if self.rng.random() < 0.5 else ""
        return (f"SELECT {table.order('a')}, {call} OVER ({partition}ORDER BY {table.order('a')}) FROM {self._from(table)}"
                f"{make.where(1)}", False)

    # --- groups ---------------------------------------------------------------------------

    def _shown(self, expression):
        """A value of which only the weight is told, as equal ones may differ."""
        return f"HEX(WEIGHT_STRING({expression}))"

    def _aggregates(self, make):
        rng, found = self.rng, []
        for _ in range(rng.randint(1, 4)):
            exact = make.column("int", "dec", "year")
            number = exact[0] if exact and rng.random() < 0.6 else f"CAST({make.number(2)} AS DECIMAL(30,4))"
            anything = make.any(1)
            found.append(rng.choice((
                "COUNT(*)", f"COUNT({anything})", f"SUM({number})", f"AVG({number})", f"MIN({number})", f"MAX({number})",
                f"SUM(DISTINCT {number})", f"COUNT(DISTINCT {anything})", self._shown(f"MIN({anything})"),
                self._shown(f"MAX({anything})"), f"SUM({make.condition(1)})", f"BIT_AND({number})", f"BIT_OR({number})", f"BIT_XOR({number})",
                f"SUM(CASE WHEN {make.condition(1)} THEN {number} ELSE 0 END)", f"SUM(IF({make.condition(1)}, 1, 0))",
                f"HEX(GROUP_CONCAT(DISTINCT CAST({number} AS CHAR) ORDER BY 1))", f"STDDEV({number}) IS NULL")))
        return ", ".join(found)

    def aggregate(self):
        """Aggregates without groups."""
        table, make = self._table()
        return f"SELECT {self._aggregates(make)} FROM {self._from(table)}{make.where()}", True

    def groups(self):
        """Aggregates by groups."""
        table, make = self._table()
        return self._grouped(make, self._from(table))

    def _grouped(self, make, tables, extra=""):
        rng = self.rng
        by = [make.column()[0] if rng.random() < 0.7 else make.any(1) for _ in range(rng.choice((1, 1, 2, 3)))]
        shown = ", ".join(self._shown(expression) for expression in by)
        having = f" HAVING {rng.choice(('COUNT(*) > 1', 'SUM(1) < 5', 'COUNT(*) % 2'))}" if rng.random() < 0.2 else ""
        rollup = " WITH ROLLUP" if rng.random() < 0.06 else ""
        text = f"SELECT {shown}, {self._aggregates(make)} FROM {tables}{make.where() or ' WHERE 1'}{extra} GROUP BY {', '.join(by)}{rollup}{having}"
        if rng.random() < 0.2 and not rollup:
            text = f"SELECT COUNT(*) FROM ({text.replace('SELECT ', 'SELECT 1 AS x, ', 1).split(', ', 1)[0]} FROM {text.partition(' FROM ')[2]}) AS d" \
                if "SELECT" not in text[7:] else text
        return text, False

    # --- several tables -------------------------------------------------------------------

    def _joined(self):
        """(tables, expressions over all of them)."""
        rng, count = self.rng, self.rng.choice((2, 2, 2, 3))
        chosen = [rng.choice(self.tables) for _ in range(count)]
        scope, text = chosen[0].scope("a"), self._from(chosen[0])
        for table, alias in zip(chosen[1:], "bc"):
            own = table.scope(alias)
            left = Expressions(rng, scope).column()
            same = [entry for entry in own if entry[1] == left[1]] or own
            on = f"{left[0]} = {rng.choice(same)[0]}"
            scope = scope + own
            if rng.random() < 0.3:
                on += " AND " + Expressions(rng, scope).simple_condition()
            text += f" {rng.choice(('JOIN', 'JOIN', 'LEFT JOIN', 'STRAIGHT_JOIN'))} {self._from(table, alias)} ON {on}"
        return text, Expressions(rng, scope)

    def join(self):
        """Rows of several tables."""
        text, make = self._joined()
        outputs = ", ".join(make.any(1) for _ in range(self.rng.randint(1, 3)))
        return f"SELECT {outputs} FROM {text}{make.where()}", False

    def join_groups(self):
        """Groups over several tables."""
        text, make = self._joined()
        if self.rng.random() < 0.4:
            return f"SELECT {self._aggregates(make)} FROM {text}{make.where()}", True
        return self._grouped(make, text)

    def subquery(self):
        """Subqueries of all kinds."""
        rng = self.rng
        table, make = self._table()
        other = rng.choice(self.tables)
        inner, both = Expressions(rng, other.scope("i")), Expressions(rng, table.scope("a") + other.scope("i"))
        outer, column = make.column(), inner.column()
        same = [entry for entry in other.scope("i") if entry[1] == outer[1]]
        column = rng.choice(same) if same else column
        source = self._from(other, "i")
        condition = rng.choice((
            f"{outer[0]} {rng.choice(('IN', 'NOT IN'))} (SELECT {column[0]} FROM {source}{inner.where(1)})",
            f"{rng.choice(('EXISTS', 'NOT EXISTS'))} (SELECT 1 FROM {source} WHERE {both.condition(1)} AND {outer[0]} = {column[0]})",
            f"{outer[0]} > ALL (SELECT {column[0]} FROM {source}{inner.where(1)})",
            f"{outer[0]} = ANY (SELECT {column[0]} FROM {source}{inner.where(1)})",
            f"{make.number(1)} < (SELECT COUNT(*) FROM {source} WHERE {column[0]} = {outer[0]})",
            f"(SELECT COUNT(*) FROM {source}{inner.where(1)}) > 1"))
        outputs = rng.choice(("COUNT(*)", "*", f"COUNT(*), (SELECT COUNT(*) FROM {source} WHERE {inner.simple_condition()})"))
        joint = rng.choice((" AND ", " OR "))
        return f"SELECT {outputs} FROM {self._from(table)} WHERE {condition}{joint}{make.condition(1)}", False

    def set_operation(self):
        """UNION, EXCEPT, INTERSECT."""
        rng, parts = self.rng, []
        for _ in range(rng.choice((2, 2, 3))):
            table, make = self._table()
            parts.append(f"SELECT {self._shown(make.any(1))}, CAST({make.number(1)} AS DECIMAL(20,2)) FROM {self._from(table)}{make.where(1)}")
        operators = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
        text = parts[0]
        for part in parts[1:]:
            text += f" {rng.choice(operators)} {part}"
        return text, False

    def recursive(self):
        """WITH, recursive or not."""
        rng = self.rng
        table, make = self._table()
        if rng.random() < 0.5:
            query, _ = self.aggregate()
            return f"WITH c AS ({query.replace('SELECT ', 'SELECT COUNT(*) AS n, ', 1)}) SELECT n FROM c JOIN c AS d USING (n)", False
        number = make.column("int") or ("1", "int")
        return (f"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {rng.choice((5, 50, 200))}) "
                f"SELECT r.n, COUNT(*) FROM r JOIN {self._from(table)} ON {number[0]} = r.n{make.where(1)} GROUP BY r.n", False)


def settings(rng):
    """SET statements that change how queries and values are understood."""
    modes = ["STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ALLOW_INVALID_DATES",
             "ERROR_FOR_DIVISION_BY_ZERO", "PAD_CHAR_TO_FULL_LENGTH", "NO_UNSIGNED_SUBTRACTION", "TIME_ROUND_FRACTIONAL",
             "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE", "NO_AUTO_VALUE_ON_ZERO", "EMPTY_STRING_IS_NULL"]
    weights = rng.random()
    chosen = [] if weights < 0.3 else rng.sample(modes, rng.randint(1, 3))
    text = f"SET sql_mode = '{','.join(chosen)}'"
    if rng.random() < 0.4:
        text += f", time_zone = '{rng.choice(('+00:00', '+05:30', '-08:00'))}'"
    if rng.random() < 0.2:
        text += f", collation_connection = {rng.choice(('utf8mb4_bin', 'utf8mb4_general_ci', 'utf8mb4_unicode_ci', 'latin1_swedish_ci'))}"
    if rng.random() < 0.2:
        text += f", div_precision_increment = {rng.choice((0, 4, 12))}"
    return text


def constants(rng):
    """User variables that expressions mention."""
    return f"SET @five = 5, @word = {values.word(rng)}, @day = {values.date(rng)}, @none = NULL"
