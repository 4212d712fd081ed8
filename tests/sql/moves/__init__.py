"""The parts of move_partition.py: transfers through a front, a cluster to move in, and one move with a death in it."""
