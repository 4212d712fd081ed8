"""Parts of bench-insert.py: the statements, the measurement, the chart."""
