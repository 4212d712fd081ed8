"""Histories of transactions, recorded and judged: which dependencies they had, and whether these go in a circle."""
