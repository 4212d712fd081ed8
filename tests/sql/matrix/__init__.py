"""Conditions of every kind, on columns of every type, beside constants of every type, in every mode."""
