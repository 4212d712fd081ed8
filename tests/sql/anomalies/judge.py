"""What a history shows, in the manner of Elle: lists that only grow tell in which order their elements came, so each read tells which
transactions it comes after and before.

    ww  T appended to a list just before U did      wr  U read what T appended last      rw  T read a list as it was before U appended

A committed transaction must be whole: nobody reads what was rolled back (G1a), nor a list between two appends of one transaction (G1b);
no append is lost or there twice. At SERIALIZABLE no circle of dependencies may exist. At REPEATABLE READ a transaction of plain reads sees
one snapshot: nothing it has missed may come before something that it has seen. At READ COMMITTED this holds for each statement.
"""

import collections


class Judge:
    """Judges transactions by the lists as they are in the end."""

    def __init__(self, transactions, final):
        self.transactions = [one for one in transactions if one.state == "committed"]
        self.aborted = {element for one in transactions if one.state == "aborted" for _, element in one.appends}
        self.unknown = {element for one in transactions if one.state == "unknown" for _, element in one.appends}
        self.final, self.found = final, []
        self.writer = {element: one for one in transactions for _, element in one.appends}
        self.place = {element: (key, place) for key, elements in final.items() for place, element in enumerate(elements)}
        self.edges = collections.defaultdict(dict)

    def run(self):
        """All that is wrong, as texts."""
        for one in self.transactions:
            self.found += [f"transaction {one.number} ({one.level}): {text}" for text in one.wrong]
        self._appends()
        for one in self.transactions:
            for before, read in one.reads:
                self._read(one, before, read)
        self._order()
        self._circles()
        self._snapshots()
        return self.found

    def _appends(self):
        seen = collections.Counter(element for elements in self.final.values() for element in elements)
        for element, count in seen.items():
            if element in self.aborted or count > 1:
                self.found.append(f"element {element} is in the end there {count} times, " + ("though rolled back" if element in self.aborted else ""))
        for one in self.transactions:
            self.found += [f"append {element} of transaction {one.number} to list {key} is lost" for key, element in one.appends if element not in seen]

    def _read(self, one, before, read):
        own = collections.defaultdict(list)
        for key, element in one.appends[:before]:
            own[key].append(element)
        for key, elements in read.lists.items():
            told = f"transaction {one.number} ({one.level}), {read.statement}: list {key}"
            if list(elements[len(elements) - len(own[key]):]) != own[key]:
                self.found.append(f"{told} does not end with its own {own[key]}: {elements[-5:]}")
                continue
            others = elements[:len(elements) - len(own[key])]
            if any(element in self.aborted for element in others):
                self.found.append(f"{told} has what was rolled back (G1a): {[e for e in others if e in self.aborted]}")
            elif tuple(self.final[key][:len(others)]) != tuple(others) and not set(others) & self.unknown:
                self.found.append(f"{told} is no beginning of what it became: {others[-6:]}, {self.final[key][:len(others)][-6:]}")
            elif others:
                writer = self.writer[others[-1]]
                if [element for of, element in writer.appends if of == key][-1] != others[-1]:
                    self.found.append(f"{told} was read between two appends of transaction {writer.number} (G1b)")
                self._edge(writer, one, "wr", key)
            self._before(one, key, len(others))

    def _before(self, one, key, place):
        """It read the list as it was before the element at `place`."""
        for element in self.final[key][place:]:
            if self.writer[element] is not one:
                self._edge(one, self.writer[element], "rw", key)
                return

    def _edge(self, first, second, kind, key):
        if first is not second:
            self.edges[first.number].setdefault(second.number, (kind, key))

    def _order(self):
        for key, elements in self.final.items():
            for first, second in zip(elements, elements[1:]):
                self._edge(self.writer[first], self.writer[second], "ww", key)

    def _circles(self):
        """A circle among transactions at SERIALIZABLE: a way back to where it began."""
        level = {one.number: one.level for one in self.transactions}
        graph = {a: [b for b in to if level.get(b) == "SERIALIZABLE"] for a, to in self.edges.items() if level.get(a) == "SERIALIZABLE"}
        for component in _components(graph):
            if len(component) > 1:
                way = _circle(graph, component)
                self.found.append("a circle: " + " ".join(f"{a} -{'/'.join(map(str, self.edges[a][b]))}-> {b}" for a, b in zip(way, way[1:])))

    def _snapshots(self):
        """What a reader has seen, and what comes before that, it has not missed."""
        for one in self.transactions:
            if one.appends or any(read.how for _, read in one.reads) or one.level == "SERIALIZABLE":
                continue
            reads = [read for _, read in one.reads]
            for group in [reads] if one.level == "REPEATABLE READ" else [[read] for read in reads]:
                self._snapshot(one, group)

    def _snapshot(self, one, reads):
        seen, missed = set(), set()
        for read in reads:
            for key, elements in read.lists.items():
                seen.update(self.writer[element].number for element in elements)
                missed.update(self.writer[element].number for element in self.final[key][len(elements):])
        if seen & missed:
            self.found.append(f"transaction {one.number} ({one.level}) saw {sorted(seen & missed)[:5]} in part: {[read.statement for read in reads]}")


def _components(graph):
    """Strongly connected components (Tarjan's, without recursion)."""
    index, low, on_stack, stack, found, counter = {}, {}, set(), [], [], 0
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = counter
                    counter += 1
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.add(member)
                        if member == node:
                            break
                    found.append(component)
    return found


def _circle(graph, component):
    """The shortest way from some member back to itself."""
    best = None
    for start in sorted(component)[:50]:
        queue, came = collections.deque([start]), {start: None}
        while queue:
            node = queue.popleft()
            if start in graph.get(node, ()):
                way = [start]
                while node is not None:
                    way.append(node)
                    node = came[node]
                way.reverse()
                if best is None or len(way) < len(best):
                    best = way
                break
            for other in graph.get(node, ()):
                if other in component and other not in came:
                    came[other] = node
                    queue.append(other)
    return best or sorted(component)
