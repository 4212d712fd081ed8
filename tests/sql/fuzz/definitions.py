"""Random DDL on tables that are there."""

from fuzz import schema, values
from fuzz.expressions import Expressions
from fuzz.selects import Selects
from fuzz.steps import How, Step


class Definitions:
    """Makes ALTER and its kin. Names come from `numbers`, an iterator, so that none comes twice."""

    def __init__(self, rng, tables, numbers, is_crowd=False):
        self.rng, self.tables, self.numbers, self.is_crowd = rng, list(tables), numbers, is_crowd

    def any(self):
        """A list of steps."""
        kinds = (self.alter,) * 10 + (self.key, self.key, self.rename, self.rename, self.like, self.select, self.replace,
                                      self.optimize, self.exchange, self.partitions, self.versioning, self.drop, self.temporary,
                                      self.view, self.procedure, self.handler, self.sequence, self.truncate, self.lock)
        made = self.rng.choice(kinds)()
        return made if isinstance(made, list) else [made]

    def _name(self, letter):
        return f"{letter}{next(self.numbers)}"

    def _table(self, condition=None):
        usable = [table for table in self.tables if condition is None or condition(table)]
        return self.rng.choice(usable) if usable else None

    # --- ALTER ----------------------------------------------------------------------------

    def _kinds(self, table):
        found = []
        for column in table.columns:
            is_long = "text" in column.type or "blob" in column.type or column.family == "json"
            found.append((column.name, values.Kind(column.type, column.family, not is_long,
                                                   3 if column.family in ("text", "binary") and "(1)" not in column.type else 0)))
        return found

    def _clause(self, table):
        rng, column = self.rng, self.rng.choice(table.columns)
        place = rng.choice(("", "", " FIRST", f" AFTER {rng.choice(table.columns).name}"))
        keys = list(table.keys)

        def modify():
            text, _ = schema.column(rng, column.name)
            return f"MODIFY COLUMN {text}{place}"

        def grow():
            larger = {"tinyint": "SMALLINT", "smallint": "INT", "int": "BIGINT", "char": "CHAR(40)", "varchar": "VARCHAR(260)",
                      "text": "LONGTEXT", "enum": "ENUM('red','Green','blue','mauve')", "set": "SET('x','y','z','v')"}
            name = column.type.split("(")[0].split()[0]
            kind = larger.get(name, column.type.split("/*")[0])
            of = f" CHARACTER SET {column.collation.split('_')[0]} COLLATE {column.collation}" if column.collation else ""
            return f"MODIFY COLUMN {column.name} {kind}{of}{'' if column.nullable else ' NOT NULL'}{place}"

        def add():
            name = self._name("n")
            made = schema.generated(rng, name, self._kinds(table)) if rng.random() < 0.3 else None
            return f"ADD COLUMN {made[0] if made else schema.column(rng, name)[0]}{place}"

        return rng.choice((
            add, add, add, lambda: f"DROP COLUMN {column.name}", modify, modify, grow, grow,
            lambda: f"CHANGE COLUMN {column.name} {schema.column(rng, self._name('r'))[0]}",
            lambda: f"RENAME COLUMN {column.name} TO {self._name('r')}",
            lambda: f"ALTER COLUMN {column.name} SET DEFAULT {values.literal(rng, column.family)}",
            lambda: f"ALTER COLUMN {column.name} DROP DEFAULT",
            lambda: "ADD " + (schema.key(rng, self._name("k"), self._kinds(table)) or "COLUMN x1 INT"),
            lambda: f"DROP KEY {rng.choice(keys)}" if keys else "FORCE",
            lambda: f"RENAME KEY {rng.choice(keys)} TO {self._name('k')}" if keys else "FORCE",
            lambda: f"ALTER INDEX {rng.choice(keys)} {rng.choice(('', 'NOT '))}IGNORED" if keys else "FORCE",
            lambda: "DROP PRIMARY KEY" if "PRIMARY" in keys else
            f"ADD PRIMARY KEY ({column.name})",
            lambda: f"DROP PRIMARY KEY, ADD PRIMARY KEY ({column.name})" if "PRIMARY" in keys else "FORCE",
            lambda: rng.choice(("FORCE", "ENGINE=<<engine>>", "COMMENT='x'", "AUTO_INCREMENT=500", "ORDER BY " + column.name)),
            lambda: f"CONVERT TO CHARACTER SET {rng.choice(('latin1', 'utf8mb4', 'utf16'))}",
            lambda: f"ADD CONSTRAINT {self._name('x')} CHECK ({column.name} IS NULL OR {column.name} <> 77)",
            lambda: f"ADD UNIQUE KEY {self._name('h')} ({column.name}) USING HASH",
        ))()

    def alter(self):
        """ALTER TABLE with one to three changes."""
        rng, table = self.rng, self._table()
        clauses = [self._clause(table) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        # InnoDB loses more rows in ALTER IGNORE than those that have become duplicates.
        ignore = " IGNORE" if self.is_crowd and rng.random() < 0.25 else ""
        text = f"ALTER{ignore} TABLE {table.name} {', '.join(clauses)}"
        if rng.random() < 0.15:
            return Step(f"{text}, ALGORITHM=COPY", How.DDL)
        if rng.random() < 0.25:
            # What one of them refuses to do in this manner is done in any.
            how = rng.choice(("INSTANT", "NOCOPY", "INPLACE"))
            return Step(f"{text}, ALGORITHM={how}{rng.choice(('', ', LOCK=NONE'))}", How.DDL)
        return Step(text, How.DDL)

    def key(self):
        """CREATE INDEX, DROP INDEX."""
        rng, table = self.rng, self._table()
        text = schema.key(rng, self._name("k"), self._kinds(table))
        if text is None or rng.random() < 0.4 and table.keys:
            return Step(f"DROP INDEX `{rng.choice(list(table.keys) or ['none'])}` ON {table.name}", How.DDL)
        head, _, parts = text.partition(" (")
        return Step(f"CREATE {head.replace('KEY', 'INDEX')} ON {table.name} ({parts}", How.DDL)

    def partitions(self):
        """Partitions come and go."""
        rng, table = self.rng, self._table(lambda t: t.is_partitioned) or self._table()
        first = table.columns[0].name
        change = rng.choice((f"PARTITION BY KEY ({first}) PARTITIONS 3", f"PARTITION BY HASH ({first}) PARTITIONS 2", "REMOVE PARTITIONING",
                             "COALESCE PARTITION 1", "ADD PARTITION PARTITIONS 2", "TRUNCATE PARTITION p0", "DROP PARTITION p1",
                             "REBUILD PARTITION ALL", "ANALYZE PARTITION ALL", "OPTIMIZE PARTITION ALL",
                             "REORGANIZE PARTITION p0 INTO (PARTITION p0a VALUES LESS THAN (-3), PARTITION p0 VALUES LESS THAN (0))",
                             "REORGANIZE PARTITION p3 INTO (PARTITION p3a VALUES LESS THAN (99), PARTITION p3 VALUES LESS THAN MAXVALUE)"))
        return Step(f"ALTER TABLE {table.name} {change}", How.DDL)

    def exchange(self):
        """A partition is exchanged with a table of the same columns."""
        table = self._table(lambda t: t.is_partitioned)
        if table is None:
            return self.partitions()
        name, partition = self._name("e"), self.rng.choice(("p0", "p1", "p2"))
        return [Step(f"CREATE TABLE {name} LIKE {table.name}", How.DDL), Step(f"ALTER TABLE {name} REMOVE PARTITIONING", How.DDL),
                Step(f"INSERT IGNORE INTO {name} SELECT * FROM {table.name} PARTITION ({partition}) ORDER BY {table.order()} LIMIT 5", How.QUIET),
                Step(f"ALTER TABLE {table.name} EXCHANGE PARTITION {partition} WITH TABLE {name}", How.DDL),
                Step(f"SELECT COUNT(*) FROM {table.name}", How.SELECT), Step(f"SELECT COUNT(*) FROM {name}", How.SELECT),
                Step(f"DROP TABLE {name}", How.DDL)]

    def versioning(self):
        """System versioning comes and goes."""
        table = self._table()
        if table.is_versioned:
            change = self.rng.choice(("DROP SYSTEM VERSIONING", "PARTITION BY SYSTEM_TIME LIMIT 3 PARTITIONS 3"))
            steps = [Step(f"ALTER TABLE {table.name} {change}", How.DDL)]
            if self.rng.random() < 0.5:
                steps = [Step(f"DELETE HISTORY FROM {table.name}", How.DONE)]
            return steps
        return Step(f"ALTER TABLE {table.name} ADD SYSTEM VERSIONING", How.DDL)

    # --- whole tables ---------------------------------------------------------------------

    def rename(self):
        """RENAME TABLE, to another name and at times back, or in a ring."""
        rng, table = self.rng, self._table()
        name = self._name("t")
        if rng.random() < 0.3 and len(self.tables) > 1:
            other = rng.choice([other for other in self.tables if other is not table])
            return Step(f"RENAME TABLE {table.name} TO {name}, {other.name} TO {table.name}, {name} TO {other.name}", How.DDL)
        if rng.random() < 0.5:
            return Step(f"ALTER TABLE {table.name} RENAME TO {name}, ADD COLUMN {self._name('n')} INT DEFAULT 3", How.DDL)
        return Step(f"RENAME TABLE {table.name} TO {name}", How.DDL)

    def like(self):
        """CREATE TABLE ... LIKE, filled."""
        table, name = self._table(), self._name("t")
        return [Step(f"CREATE TABLE {name} LIKE {table.name}", How.DDL),
                Step(f"INSERT IGNORE INTO {name} SELECT * FROM {table.name} ORDER BY {table.order()}", How.QUIET)]

    def select(self):
        """CREATE TABLE ... SELECT."""
        rng, name = self.rng, self._name("t")
        table = self._table()
        make = Expressions(rng, table.scope("a"))
        if rng.random() < 0.4:
            query = Selects(rng, self.tables).groups()[0].replace("SELECT ", "SELECT 1 AS n, ", 1)
            return Step(f"CREATE OR REPLACE TABLE {name} {query}", How.DDL)
        outputs = ", ".join(f"{make.any(2)} AS x{n}" for n in range(rng.randint(1, 4)))
        query = f"SELECT {outputs} FROM {table.name} AS a{make.where(1)} ORDER BY {table.order('a')}"
        columns = rng.choice(("", "(id INT AUTO_INCREMENT PRIMARY KEY)", f"({schema.column(rng, 'y')[0]})"))
        return Step(f"CREATE {rng.choice(('', 'OR REPLACE '))}TABLE {name} {columns} {rng.choice(('', 'IGNORE', 'REPLACE'))} {query}", How.DDL)

    def replace(self):
        """CREATE OR REPLACE TABLE."""
        table = self._table()
        return Step(schema.create(self.rng, table.name).replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1), How.DDL)

    def drop(self):
        """DROP TABLE, while there are others."""
        if len(self.tables) < 3:
            return Step(schema.create(self.rng, self._name("t")), How.DDL)
        return Step(f"DROP TABLE {self._table().name}", How.DDL)

    def truncate(self):
        """TRUNCATE TABLE."""
        return Step(f"TRUNCATE TABLE {self._table().name}", How.DDL) if self.rng.random() < 0.3 else self.alter()

    def optimize(self):
        """OPTIMIZE, ANALYZE, CHECK."""
        verb = self.rng.choice(("OPTIMIZE TABLE {}", "OPTIMIZE TABLE {}", "ANALYZE TABLE {}", "ANALYZE TABLE {} PERSISTENT FOR ALL",
                                "CHECK TABLE {}", "FLUSH TABLES {}", "CHECKSUM TABLE {}", "SHOW CREATE TABLE {}"))
        return Step(verb.format(self._table().name), How.QUIET)

    def temporary(self):
        """A temporary table."""
        name, table = self._name("z"), self._table()
        return [Step(f"CREATE TEMPORARY TABLE {name} ENGINE=<<engine>> AS SELECT * FROM {table.name} ORDER BY {table.order()}", How.QUIET),
                Step(f"ALTER TABLE {name} ADD COLUMN nn INT DEFAULT 4, ADD KEY (nn)", How.QUIET),
                Step(f"UPDATE {name} SET nn = 5", How.DONE), Step(f"SELECT nn, COUNT(*) FROM {name} GROUP BY nn", How.ROWS),
                Step(f"DROP TEMPORARY TABLE {name}", How.QUIET)]

    # --- what runs statements --------------------------------------------------------------

    def view(self):
        """A view, read and changed."""
        name, table = self._name("v"), self._table()
        make = Expressions(self.rng, table.scope())
        return [Step(f"CREATE VIEW {name} AS SELECT * FROM {table.name}{make.where(1)}", How.QUIET),
                Step(f"SELECT COUNT(*) FROM {name}", How.SELECT), Step(f"SELECT * FROM {name}", How.ROWS),
                Step(f"DELETE FROM {name} WHERE {table.columns[0].name} IS NULL", How.DONE), Step(f"DROP VIEW {name}", How.QUIET)]

    def procedure(self):
        """A procedure with a cursor and statements that it runs several times; a trigger."""
        rng, name, table = self.rng, self._name("f"), self._table()
        if rng.random() < 0.4:
            trigger = f"{name}t"
            return [Step(f"CREATE TRIGGER {trigger} {rng.choice(('BEFORE', 'AFTER'))} {rng.choice(('INSERT', 'UPDATE', 'DELETE'))} ON "
                         f"{table.name} FOR EACH ROW SET @fired = IFNULL(@fired, 0) + 1", How.QUIET),
                    Step("SELECT 1", How.ROWS), Step(f"DELETE FROM {table.name} ORDER BY {table.order()} LIMIT 1", How.DONE),
                    Step("SELECT @fired IS NULL", How.ROWS), Step(f"DROP TRIGGER {trigger}", How.QUIET)]
        make = Expressions(rng, table.scope())
        column = rng.choice(table.columns).name
        body = (f"DECLARE n, total INT DEFAULT 0; DECLARE done INT DEFAULT 0; DECLARE c CURSOR FOR SELECT COUNT(*) FROM {table.name} "
                f"GROUP BY {column}; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; REPEAT FETCH c INTO n; "
                f"SET total = total + IF(done, 0, n); UNTIL done END REPEAT; CLOSE c; SELECT total, (SELECT COUNT(*) FROM "
                f"{table.name}{make.where(1)}) AS x")
        return [Step(f"CREATE PROCEDURE {name}() BEGIN {body}; END", How.QUIET), Step(f"CALL {name}()", How.ROWS),
                Step(f"CALL {name}()", How.ROWS), Step(f"DROP PROCEDURE {name}", How.QUIET)]

    def handler(self):
        """HANDLER, by keys up and down."""
        rng, table = self.rng, self._table(lambda t: t.keys and not t.is_partitioned)
        if table is None:
            return self.optimize()
        key, (columns, _) = rng.choice(list(table.keys.items()))
        first = next((c for c in table.columns if c.name == columns[0]), table.columns[0])
        key, steps = f"`{key}`", [Step(f"HANDLER {table.name} OPEN AS h", How.QUIET)]
        for _ in range(rng.randint(1, 6)):
            place = rng.choice(("FIRST", "LAST", "NEXT", "PREV", f"{rng.choice(('=', '>=', '<=', '>', '<'))} ({values.literal(rng, first.family)})"))
            limit = rng.choice(("", " LIMIT 3"))
            # Rows that are equal by the key come in any order, so how many come is all that can be compared.
            steps.append(Step(f"HANDLER h READ {key} {place}{limit}", How.QUIET))
        return steps + [Step("HANDLER h READ FIRST LIMIT 100", How.QUIET), Step("HANDLER h CLOSE", How.QUIET)]

    def sequence(self):
        """A sequence."""
        name = self._name("q")
        steps = [Step(f"CREATE SEQUENCE {name} START WITH {self.rng.randint(1, 9)} INCREMENT BY 2 CACHE {self.rng.choice((0, 3, 10))} "
                      "ENGINE=<<engine>>", How.QUIET)]
        for _ in range(self.rng.randint(1, 5)):
            steps.append(Step(self.rng.choice((f"SELECT NEXT VALUE FOR {name}", f"SELECT LASTVAL({name})", f"SELECT SETVAL({name}, 50)")), How.ROWS))
        steps += [Step(f"ALTER SEQUENCE {name} RESTART 7", How.QUIET), Step(f"SELECT NEXTVAL({name})", How.ROWS)]
        return steps + [Step(f"DROP SEQUENCE {name}", How.QUIET)]

    def lock(self):
        """LOCK TABLES around changes."""
        table = self._table()
        return [Step(f"LOCK TABLES {table.name} WRITE", How.QUIET),
                Step(f"DELETE FROM {table.name} ORDER BY {table.order()} LIMIT 1", How.DONE),
                Step(f"ALTER TABLE {table.name} ADD COLUMN {self._name('n')} INT", How.DDL),
                Step(f"SELECT COUNT(*) FROM {table.name}", How.SELECT), Step("UNLOCK TABLES", How.QUIET)]
