"""The errors that a client may get, by trouble, each with its reason. Whatever is not here is a finding."""

import dataclasses
import re


@dataclasses.dataclass
class Rule:
    """An error number, and what its text, or the warnings beside it, must say."""
    numbers: tuple
    says: str
    why: str

    def allows(self, number, text):
        return number in self.numbers and re.search(self.says, text, re.I | re.S) is not None


ALWAYS = [
    Rule((1205,), "lock wait timeout", "others hold the row, or DDL the table"),
    Rule((1213,), "deadlock", "two clients lock in different orders"),
    Rule((1412,), "definition has changed", "a snapshot is older than an ALTER TABLE"),
]

# What the texts must say.
_NO_FILE = r"errno: 2[34]|too many open files|error 2[34]\b|os error 24"
_NO_SPACE = r"no space|errno: 28|is full|disk.full|error 28\b"
_NO_MEMORY = r"memory|errno: 12|error 12\b"

# The server's errors of its own files: those of its library, and those from "can't create file" to "error writing file".
_OF_FILES = (*range(1, 36), *range(1004, 1027))

BY_TROUBLE = {
    "kill": [
        Rule((1053,), "shutdown in progress", "the server is being stopped"),
        Rule((1927, 1317), "killed|interrupted", "a server that stops ends its connections"),
    ],
    "files": [
        Rule((*_OF_FILES, 1030, 1105, 1180, 1296), _NO_FILE, "no descriptor is to be had"),
        Rule((1696,), "read from the .par file", "the server does not say why it cannot read its file of a partitioned table"),
    ],
    "threads": [
        Rule((1135,), "new thread", "a connection needs a thread"),
    ],
    "memory": [
        Rule((5, 1037, 1038, 1041, 1135, 1180, 1030, 1296), _NO_MEMORY, "no memory is to be had"),
    ],
    "disk": [
        Rule((*_OF_FILES, 1030, 1114, 1180), _NO_SPACE, "the disk is full"),
    ],
    "replica": [],
}
BY_TROUBLE["stop"] = BY_TROUBLE["kill"]
BY_TROUBLE["rot"] = BY_TROUBLE["kill"]
