"""Positions of replication: what "0-1-100,1-3-7" says, and which of two has more."""


def position(text):
    """Domain -> (server, number) of a list such as @@gtid_current_pos; one entry for each domain."""
    found = {}
    for part in filter(None, (text or "").replace("\\n", "").replace(" ", "").split(",")):
        domain, server, number = map(int, part.split("-"))
        if domain not in found or found[domain][1] < number:
            found[domain] = (server, number)
    return found


def state(text):
    """(domain, server) -> number of a list such as @@gtid_binlog_state, which has one entry for each pair."""
    found = {}
    for part in filter(None, (text or "").replace("\\n", "").replace(" ", "").split(",")):
        domain, server, number = map(int, part.split("-"))
        found[domain, server] = max(number, found.get((domain, server), 0))
    return found


def covers(first, second):
    """Whether the first position has all that the second has."""
    return all(first.get(domain, (0, 0))[1] >= number for domain, (_, number) in second.items())


def extra(own_state, other_state, other_position):
    """What is in one server's history and not in another's: (domain, server, first missing, last), where the other
    may know some of it only from its position (its binary log began later)."""
    found = []
    for (domain, server), number in sorted(own_state.items()):
        known = other_state.get((domain, server), 0)
        if other_position.get(domain, (0, 0))[0] == server:
            known = max(known, other_position[domain][1])
        if number > known:
            found.append((domain, server, known + 1, number))
    return found
