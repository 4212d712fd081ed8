"""Parts of bad_input.py: damaged files, and a full disk."""
