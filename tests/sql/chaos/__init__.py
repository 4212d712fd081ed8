"""Chaos: a mixed load, troubles that come and go, and what has to hold nevertheless (tests/sql/chaos.py)."""
