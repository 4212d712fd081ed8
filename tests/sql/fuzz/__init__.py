"""A grammar fuzzer: random schemas, changes and queries for two engines, or for many sessions at once."""
