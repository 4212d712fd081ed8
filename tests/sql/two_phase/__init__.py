"""Parts of two_phase.py: what kills the server, what must hold after a restart."""
