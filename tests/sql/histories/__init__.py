"""Parts of compare_histories.py: random transactions of several sessions, and playing them on an engine."""
