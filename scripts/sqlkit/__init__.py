"""What the Python programs of this project share: a client for the server's wire protocol, private
servers, what is different from engine to engine, and aligned tables. Standard library only."""
