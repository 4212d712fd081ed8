"""Weights for crowds (`--partitions`): mostly partitioned tables, with unique keys by hash, copied by LIKE and exchanged.

The server checks little of this, and ruins tables of every engine: so not in CI. What only one engine meets is worth a look.
"""

from . import definitions, schema
from .steps import How, Step

_TRIES = 6


def _any_of(plain):
    def any_step(self):
        chance = self.rng.random()
        parted = [table for table in self.tables if table.is_partitioned and table.columns]
        if parted and chance < 0.35:
            table = self.rng.choice(parted)
            if chance < 0.15:
                column = self.rng.choice(table.columns).name
                return [Step(f"ALTER TABLE {table.name} ADD UNIQUE KEY {self._name('h')} ({column}) USING HASH", How.DDL)]
            if chance < 0.25:
                return [Step(f"CREATE TABLE {self._name('t')} LIKE {table.name}", How.DDL)]
            return self.exchange()
        return [self.partitions()] if chance < 0.45 else plain(self)
    return any_step


def _create_of(plain):
    def create(rng, name):
        for _ in range(_TRIES):
            text = plain(rng, name)
            if "PARTITION" in text:
                return text
        return text
    return create


def use():
    """From now on."""
    definitions.Definitions.any = _any_of(definitions.Definitions.any)
    schema.create = _create_of(schema.create)
