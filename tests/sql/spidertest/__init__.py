"""The parts of spider.py: tables over shards beside one InnoDB table, and what happens when a server dies."""
