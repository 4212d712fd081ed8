"""Moving a table, or a partition of a Spider table, to another server; see scripts/move-partition.py."""
