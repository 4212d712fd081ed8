"""Parts of foreign_keys.py: concurrent clients, random statements, random definitions."""
