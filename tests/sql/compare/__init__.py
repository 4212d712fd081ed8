"""Parts of compare_engines.py: random tables, statements and queries, and running them side by side."""
