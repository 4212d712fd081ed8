"""Parts of kill9.py: the model, the clients, what must hold after a restart."""
