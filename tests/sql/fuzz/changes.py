"""Random changes of rows."""

from fuzz import values
from fuzz.expressions import Expressions
from fuzz.steps import Step, How
from fuzz.selects import Selects


class Changes:
    """Makes INSERT, UPDATE, DELETE, REPLACE, LOAD and transactions. What the result would depend on, the order of
    rows above all, is fixed, unless `is_crowd`."""

    def __init__(self, rng, tables, is_crowd=False):
        self.rng, self.tables, self.is_crowd = rng, list(tables), is_crowd

    def any(self):
        """A list of steps."""
        kinds = (self.insert,) * 6 + (self.update,) * 4 + (self.delete,) * 2 + (
            self.replace, self.duplicate, self.insert_select, self.several_update, self.several_delete, self.load,
            self.portion, self.truncate, self.prepared, self.many)
        made = self.rng.choice(kinds)()
        return made if isinstance(made, list) else [made]

    def _table(self, condition=None):
        usable = [table for table in self.tables if condition is None or condition(table)]
        return self.rng.choice(usable) if usable else None

    def _value(self, column):
        rng = self.rng
        if column.is_automatic and not self.is_crowd:
            return str(rng.randint(1, 60))
        choice = rng.random()
        if choice < (0.12 if column.nullable else 0.01):
            return "NULL"
        if choice < 0.16:
            return "DEFAULT" if not column.is_automatic else "7"
        if choice < 0.2:
            return values.constant(rng)
        return values.literal(rng, column.family)

    def _rows(self, table, count):
        rng, columns = self.rng, table.writable()
        if rng.random() < 0.2 and len(columns) > 1:
            kept = [column for column in columns if rng.random() < 0.7 or column.is_automatic]
            columns = kept or columns
        rows = ", ".join(f"({', '.join(self._value(column) for column in columns)})" for _ in range(count))
        return f"({', '.join(column.name for column in columns)}) VALUES {rows}"

    def _ignore(self, share=0.3):
        return " IGNORE" if self.rng.random() < share else ""

    # --- statements -----------------------------------------------------------------------

    def insert(self):
        """INSERT of a few rows."""
        table = self._table()
        text = f"INSERT{self._ignore(0.5)} INTO {table.name} {self._rows(table, self.rng.choice((1, 1, 2, 5, 20)))}"
        if self.rng.random() < 0.1:
            return Step(f"{text} RETURNING {table.order()}", How.ROWS)
        return Step(text, How.DONE)

    def many(self):
        """Enough rows that scans work on blocks."""
        table = self._table()
        return [Step(f"INSERT IGNORE INTO {table.name} {self._rows(table, 200)}", How.DONE)] + \
            ([Step(f"OPTIMIZE TABLE {table.name}", How.QUIET)] if self.rng.random() < 0.6 else [])

    def thousands(self):
        """So many rows that segments have bounds which tell something."""
        table = self._table(lambda t: not any(c.is_automatic for c in t.columns))
        if table is None:
            return self.many()
        rng, columns, outputs = self.rng, table.writable(), []
        for column in columns:
            if column.name == "id" or column.family == "int" and rng.random() < 0.5:
                outputs.append(rng.choice(("seq", "seq % 1000", "seq DIV 100", "5000 - seq")) if column.name != "id" else "seq + 100")
            else:
                some = ", ".join(values.literal(rng, column.family) for _ in range(rng.randint(1, 7)))
                outputs.append(f"ELT(seq {rng.choice(('%', 'DIV 300 %'))} 7 + 1, {some})")
        return [Step(f"INSERT IGNORE INTO {table.name} ({', '.join(c.name for c in columns)}) SELECT {', '.join(outputs)} "
                     f"FROM seq_1_to_{rng.choice((1000, 3000, 9000))}", How.DONE), Step(f"OPTIMIZE TABLE {table.name}", How.QUIET)]

    def replace(self):
        """REPLACE."""
        table = self._table()
        return Step(f"REPLACE INTO {table.name} {self._rows(table, self.rng.randint(1, 4))}", How.DONE)

    def duplicate(self):
        """INSERT ... ON DUPLICATE KEY UPDATE; which of two keys is met first is up to the engine, so only with one."""
        table = self._table(lambda t: self.is_crowd or sum(unique for _, unique in t.keys.values()) <= 1)
        if table is None:
            return self.insert()
        column = self.rng.choice(table.writable())
        value = self.rng.choice((f"VALUES({column.name})", self._value(column), column.name))
        return Step(f"INSERT{self._ignore()} INTO {table.name} {self._rows(table, self.rng.randint(1, 4))} "
                    f"ON DUPLICATE KEY UPDATE {column.name} = {value}", How.DONE)

    def _order(self, table):
        return "" if self.is_crowd else f" ORDER BY {table.order()}"

    def update(self):
        """UPDATE of one table."""
        rng, table = self.rng, self._table()
        columns = table.writable()
        chosen = rng.sample(columns, min(len(columns), rng.choice((1, 1, 2))))
        make = Expressions(rng, table.scope())
        sets = []
        for column in chosen:
            same = [other.name for other in columns if other.family == column.family]
            value = rng.choice((self._value(column), self._value(column), rng.choice(same), make.any(1)))
            if column.family in ("int", "dec") and rng.random() < 0.4:
                value = f"{column.name} {rng.choice(('+ 1', '- 1', '* 2', '% 5'))}"
            sets.append(f"{table.name}.{column.name} = {value}")
        limit = f" LIMIT {rng.randint(1, 9)}" if rng.random() < 0.2 else ""
        return Step(f"UPDATE{self._ignore()} {table.name} SET {', '.join(sets)}{make.where()}{self._order(table)}{limit}", How.DONE)

    def update_some(self):
        """A change of a part of many rows: by a condition on one column, to values of its kind."""
        table = self._table()
        column = self.rng.choice(table.writable())
        if table.in_unique(column.name):
            return [self.delete()]
        make = Expressions(self.rng, table.scope())
        return [Step(f"UPDATE IGNORE {table.name} SET {column.name} = {self._value(column)} WHERE {make.simple_condition()}", How.DONE)]

    def delete(self):
        """DELETE from one table."""
        rng, table = self.rng, self._table()
        make = Expressions(rng, table.scope())
        where = make.where() or f" WHERE {make.simple_condition()}"
        if rng.random() < 0.1:
            return Step(f"DELETE FROM {table.name}{where} RETURNING {table.order()}", How.ROWS)
        limit = f"{self._order(table)} LIMIT {rng.randint(1, 20)}" if rng.random() < 0.5 else ""
        return Step(f"DELETE{self._ignore()} FROM {table.name}{where}{limit}", How.DONE)

    def insert_select(self):
        """INSERT ... SELECT, REPLACE ... SELECT."""
        rng, table = self.rng, self._table(lambda t: self.is_crowd or not any(c.is_automatic for c in t.columns))
        if table is None:
            return self.insert()
        source = self._table()
        make, columns = Expressions(rng, source.scope("a")), table.writable()
        outputs = []
        for column in columns:
            same = [f"a.{other.name}" for other in source.columns if other.family == column.family]
            outputs.append(rng.choice(same) if same and rng.random() < 0.7 else values.literal(rng, column.family))
        order = "" if self.is_crowd else f" ORDER BY {source.order('a')}"
        verb = rng.choice((f"INSERT{self._ignore(0.7)}", "INSERT IGNORE", "REPLACE"))
        return Step(f"{verb} INTO {table.name} ({', '.join(column.name for column in columns)}) SELECT {', '.join(outputs)} "
                    f"FROM {source.name} AS a{make.where(1)}{order} LIMIT 300", How.DONE)

    def _pair(self):
        first, second = self._table(), self._table()
        one, two = first.scope("a"), second.scope("b")
        left = self.rng.choice(one)
        right = self.rng.choice([entry for entry in two if entry[1] == left[1]] or two)
        return first, Expressions(self.rng, one + two), f"{first.name} AS a JOIN {second.name} AS b ON {left[0]} = {right[0]}"

    def several_update(self):
        """UPDATE of a join: columns that no unique key has, to constants."""
        first, make, tables = self._pair()
        columns = [column for column in first.writable() if self.is_crowd or not first.in_unique(column.name)]
        if not columns:
            return self.update()
        column = self.rng.choice(columns)
        return Step(f"UPDATE{self._ignore()} {tables} SET a.{column.name} = {values.literal(self.rng, column.family)}{make.where(1)}", How.DONE)

    def several_delete(self):
        """DELETE by a join."""
        _, make, tables = self._pair()
        return Step(f"DELETE{self._ignore()} {self.rng.choice(('a', 'a', 'a, b'))} FROM {tables} "
                    f"WHERE {make.simple_condition()} AND {make.simple_condition()}", How.DONE)

    def load(self):
        """Out to a file and in again."""
        rng, table = self.rng, self._table(lambda t: not any(c.is_automatic or c.is_generated for c in t.columns))
        if table is None:
            return self.insert()
        columns = ", ".join(column.name for column in table.writable())
        file = f"<<dir>>/load-{rng.getrandbits(60)}.txt"
        how = rng.choice(("REPLACE", "IGNORE", "IGNORE"))
        order = "" if self.is_crowd else f" ORDER BY {table.order()}"
        return [Step(f"SELECT {columns} INTO OUTFILE '{file}' FROM {table.name}{order}", How.QUIET),
                Step(f"LOAD DATA INFILE '{file}' {how} INTO TABLE {table.name} ({columns})", How.DONE)]

    def portion(self):
        """FOR PORTION OF."""
        table = self._table(lambda t: t.period and not any(c.is_automatic for c in t.columns))
        if table is None:
            return self.insert()
        begin, end = sorted(f"20{self.rng.choice(('08', '20'))}-{self.rng.randint(1, 12):02}-01" for _ in range(2))
        head = f"{table.name} FOR PORTION OF {table.period} FROM '{begin}' TO '{end}'"
        columns = [column for column in table.writable() if not column.name.startswith("date_")]
        make = Expressions(self.rng, table.scope())
        if not columns or self.rng.random() < 0.5:
            return Step(f"DELETE FROM {head}{make.where(1)}", How.DONE)
        column = self.rng.choice(columns)
        order = self._order(table)
        return Step(f"UPDATE {head} SET {column.name} = {values.literal(self.rng, column.family)}{make.where(1)}{order}", How.DONE)

    def truncate(self):
        """TRUNCATE, or DELETE of all rows."""
        table = self._table()
        return Step(f"{self.rng.choice(('TRUNCATE TABLE', 'DELETE FROM', 'DELETE FROM'))} {table.name}", How.DONE) \
            if self.rng.random() < 0.3 else self.insert()

    def prepared(self):
        """A prepared statement with parameters, executed several times."""
        rng, table = self.rng, self._table()
        column, other = rng.choice(table.columns), rng.choice(table.columns)
        condition = rng.choice((f"{column.name} = ?", f"{column.name} >= ? AND {other.name} <> 'x'", f"{column.name} IN (?, 3)",
                                f"{column.name} BETWEEN ? AND 9", f"{column.name} LIKE ?"))
        query = rng.choice((f"SELECT COUNT(*), COUNT({other.name}) FROM {table.name} WHERE {condition}",
                            f"SELECT * FROM {table.name} WHERE {condition}",
                            f"SELECT {column.name} IS NULL, COUNT(*) FROM {table.name} WHERE {condition} GROUP BY 1"))
        steps = [Step(f"PREPARE p FROM '{query.replace(chr(39), chr(39) * 2)}'", How.QUIET)]
        for _ in range(rng.randint(1, 3)):
            steps.append(Step(f"EXECUTE p USING {values.constant(rng, column.family)}", How.ROWS))
        if rng.random() < 0.3:
            name = rng.choice((column, other)).name
            steps.append(Step(f"ALTER TABLE {table.name} ALTER COLUMN {name} DROP DEFAULT", How.QUIET))
            steps.append(Step("EXECUTE p USING 1", How.ROWS))
        return steps

    # --- transactions ---------------------------------------------------------------------

    def transaction(self):
        """Steps between BEGIN and its end, with savepoints, in the user's terms or in XA's."""
        rng, steps = self.rng, []
        name = f"'<<side>>{rng.getrandbits(50)}'"
        is_xa = rng.random() < 0.25
        if rng.random() < 0.5:
            level = rng.choice(("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"))
            steps.append(Step(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}", How.QUIET))
        begin = rng.choice(("BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "START TRANSACTION READ WRITE"))
        steps.append(Step(f"XA START {name}" if is_xa else begin, How.QUIET))
        saved, selects = [], Selects(rng, self.tables)
        for _ in range(rng.randint(1, 8)):
            choice = rng.random()
            if choice < 0.15:
                saved.append(f"s{len(saved)}")
                steps.append(Step(f"SAVEPOINT {saved[-1]}", How.QUIET))
            elif choice < 0.25 and saved:
                verb = rng.choice(("ROLLBACK TO", "RELEASE SAVEPOINT"))
                steps.append(Step(f"{verb} {rng.choice(saved)}", How.QUIET))
            elif choice < 0.5:
                steps.append(Step(selects.any()[0], How.SELECT))
            else:
                steps += [step for step in self.any() if not step.sql.startswith(("TRUNCATE", "OPTIMIZE", "ALTER"))]
        if not is_xa:
            return steps + [Step(rng.choice(("COMMIT", "COMMIT", "ROLLBACK")), How.QUIET)]
        end = rng.choice(("XA COMMIT", "XA ROLLBACK"))
        return steps + [Step(f"XA END {name}", How.QUIET), Step(f"XA PREPARE {name}", How.QUIET), Step(f"{end} {name}", How.QUIET)]
