"""A rotten block: a file of a table of its own is harmed, and all other tables go on."""

from chaos import schema
from chaos.troubles import Kill
from sqlkit import engines
from sqlkit.client import SqlError

_BLOCK, _STEP = 4096, 128
# 1712 the index is corrupted, 1030, 1034, 1194, 1296 of the rows' file.
_NAMED = {1030, 1034, 1194, 1195, 1296, 1712}


class Rot(Kill):
    """Bits all over a file turn over while the server is dead. Afterwards CHECK TABLE must name the key or the file,
    REPAIR TABLE mend a key, and a new table take the place of one whose rows are damaged."""

    name = "rot"

    @classmethod
    def missing(cls, scene):
        return "" if scene.engine == "PANDO" else "damage is done to files of PANDO"

    def begin(self):
        super().begin()
        directory = self.scene.primary.server.data_dir / schema.DATABASE / "rotten.pando"
        # A key that was built anew has a number in its file's name.
        path = self.scene.random.choice(sorted([*directory.glob("key-*.pando"), directory / "main.pando"]))
        self._file = path.name
        content = bytearray(path.read_bytes())
        # The first blocks say what file it is; its rows and entries are behind them. So densely, that not all is in space
        # that nobody uses.
        for place in range(2 * _BLOCK, len(content), _STEP):
            content[place] ^= 1 << self.scene.random.randrange(8)
        path.write_bytes(content)
        return f"kill -9, bits of rotten.pando/{self._file} turned over"

    def end(self):
        said = super().end()
        with self.scene.primary.connect(schema.DATABASE) as session:
            session.query("SET sql_log_bin = 0")
            self.scene.problems += self._mend(session)
        return said

    def _mend(self, session):
        """Problems."""
        told = _check(session)
        if self._file == "main.pando":
            if "rotten" not in told and "main.pando" not in told:
                return [f"rot: CHECK TABLE does not name the damage of {self._file}: {told}"]
            session.query("DROP TABLE rotten")
            schema.create_rotten(session, self.scene.engine)
            return []
        key = self._file.removeprefix("key-").removesuffix(".pando")
        problems = []
        if f"'{key}'" not in told and self._file not in told and f"`{key}`" not in told:
            problems.append(f"rot: CHECK TABLE does not name the damaged key {key}: {told}")
        rows = session.number("SELECT COUNT(*) FROM rotten USE INDEX ()")
        if rows != schema.ROTTEN_ROWS:
            problems.append(f"rot: {rows} rows are read beside the damaged key {key}")
        session.query("REPAIR LOCAL TABLE rotten")
        told = _check(session)
        if told:
            problems.append(f"rot: after REPAIR TABLE: {told}")
        return problems


def _check(session):
    try:
        return engines.check_table(session, "PANDO", "rotten")
    except SqlError as error:
        if error.number not in _NAMED:
            raise
        return str(error)
