"""Servers of several hosts, named in one MariaDB option file and reached through the client `mariadb`, so that TLS,
sockets and authentication plugins work as they do for a person:

    [client]
    user     = admin
    password = ...

    [client-one]
    host = 10.0.0.1
    port = 3306

    [client-two]
    host = 10.0.0.2

Each section `client-NAME` is a server; `mariadb --defaults-file=FILE --defaults-group-suffix=-NAME` reaches the same.
Other sections are for whoever reads the file (`section`).
"""

import configparser
import re
import subprocess

_PREFIX = "client-"
_CONNECT_SECONDS = 3
# The client's own errors: no server, or one that went away.
_GONE = {2002, 2003, 2005, 2006, 2013, 2026}
_DEFAULT_PORT = 3306


class HostDown(Exception):
    """No answer. Whether the statement was done is unknown."""


class HostError(Exception):
    """The server refused a statement."""

    def __init__(self, host, number, text):
        super().__init__(f"{host}: {text}")
        self.number = number


class Host:
    """One server of the file."""

    def __init__(self, file, name, options):
        self.file, self.name = file, name
        self.address, self.port = options.get("host", "localhost"), int(options.get("port", _DEFAULT_PORT))

    def __str__(self):
        return self.name

    def query(self, sql, seconds=60):
        """The rows of one statement, each a dict of texts by column; several statements only if one has rows.
        Raises HostDown and HostError."""
        command = ["mariadb", f"--defaults-file={self.file}", f"--defaults-group-suffix=-{self.name}", "--batch",
                   f"--connect-timeout={_CONNECT_SECONDS}", "--skip-reconnect", f"--execute={sql}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as error:
            raise HostDown(f"{self.name}: no answer in {seconds} s") from error
        if done.returncode != 0:
            text = done.stderr.strip()
            number = re.search(r"ERROR (\d+)", text)
            if number and int(number[1]) in _GONE:
                raise HostDown(f"{self.name}: {text}")
            raise HostError(self.name, int(number[1]) if number else 0, text)
        lines = done.stdout.split("\n")[:-1]
        if not lines:
            return []
        names = lines[0].split("\t")
        return [dict(zip(names, line.split("\t"))) for line in lines[1:]]

    def value(self, sql, seconds=60):
        """The first cell, None when there is no row or it is NULL."""
        rows = self.query(sql, seconds)
        cell = next(iter(rows[0].values())) if rows else "NULL"
        return None if cell == "NULL" else cell


class Hosts:
    """All servers of a file, by name, in the file's order."""

    def __init__(self, file):
        # MariaDB allows options without a value.
        parser = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False)
        with open(file, encoding="utf-8") as text:
            parser.read_file(text)
        self._parser = parser
        common = dict(parser["client"]) if parser.has_section("client") else {}
        self.all = {name.removeprefix(_PREFIX): Host(file, name.removeprefix(_PREFIX), common | dict(parser[name]))
                    for name in parser.sections() if name.startswith(_PREFIX)}

    def section(self, name):
        """The options of any section; empty when it is not there."""
        return dict(self._parser[name]) if self._parser.has_section(name) else {}


def quoted(text):
    """A text as a literal of SQL."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "''") + "'"
