"""Parts of replication.py: servers that replicate, and what is done to them."""
