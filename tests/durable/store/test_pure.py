"""The decisions of the stores, without a store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrite.durable.protocol.tree.writes import Create, Delete, Put, Write
from pyrite.durable.store.election import before
from pyrite.durable.store.exact import Operation, Tree, ahead, exact
from pyrite.durable.store.limits import line_of, parent_of
from pyrite.durable.store.watches import Change, Watches

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda n: "/" + "/".join(n))
DATA = st.sampled_from(["", "x", "y"])
WRITES: st.SearchStrategy[list[Write]] = st.lists(
    st.builds(Create, PATHS, DATA) | st.builds(Put, PATHS, DATA) | st.builds(Delete, PATHS)
)


class Refused(Exception):
    pass


def done(nodes: dict[str, bytes], operations: list[Operation]) -> dict[str, bytes]:
    """What ZooKeeper does: all operations or none."""
    nodes = dict(nodes)
    for kind, path, data in operations:
        if (path in nodes) is (kind == "create"):
            raise Refused
        if kind == "delete":
            if any(parent_of(other) == path for other in nodes):
                raise Refused
            del nodes[path]
        elif kind != "check":
            if parent_of(path) not in {"/", *nodes}:
                raise Refused
            nodes[path] = data
    return nodes


def meant(nodes: dict[str, bytes], writes: list[Write]) -> dict[str, bytes]:
    """What the writes say, one after another."""
    nodes = dict(nodes)
    for write in writes:
        if isinstance(write, Delete):
            below = f"{write.path}/"
            nodes = {p: d for p, d in nodes.items() if p != write.path and not p.startswith(below)}
        elif isinstance(write, (Create, Put)):
            for path in list(line_of(write.path))[1:]:
                nodes.setdefault(path, b"")
            if isinstance(write, Put) or write.path not in nodes:
                nodes[write.path] = write.data.encode()
    return nodes


@given(WRITES, WRITES)
def test_operations_do_what_the_writes_say(earlier: list[Write], writes: list[Write]) -> None:
    nodes = meant({}, earlier)
    tree = Tree(nodes)
    after = done(nodes, exact(writes, tree))
    assert after == meant(nodes, writes)
    assert all((path in tree) is (path in after) for path in {*nodes, *after})


@given(WRITES, WRITES, st.sets(PATHS))
def test_a_wrong_guess_is_refused_and_never_does_something_else(
    earlier: list[Write], writes: list[Write], wrong: set[str]
) -> None:
    """Only that nodes to delete are not there must be true."""
    nodes = meant({}, earlier)
    tree = Tree(nodes)
    for path in wrong:
        if any(path in line_of(w.path) for w in writes if isinstance(w, Delete)):
            continue
        if path in tree:
            tree.remove(path)
        else:
            tree.add(path)
    if any(w.path in nodes and w.path not in tree for w in writes if isinstance(w, Delete)):
        return
    try:
        assert done(nodes, exact(writes, tree)) == meant(nodes, writes)
    except Refused:
        pass


@given(WRITES, WRITES, st.integers(200, 1000))
def test_what_is_deleted_ahead_changes_nothing_in_the_end(
    earlier: list[Write], writes: list[Write], most: int
) -> None:
    nodes = meant({}, earlier)
    between = done(nodes, ahead(writes, exact(writes, Tree(nodes)), most))
    assert meant(between, writes) == meant(nodes, writes)


CHANGES = st.lists(st.tuples(PATHS, st.booleans())).map(
    lambda found: [Change(number, *each) for number, each in enumerate(found, 1)]
)


@given(CHANGES, st.dictionaries(PATHS, st.integers(0, 5)), st.integers(0, 10))
def test_a_watch_fires_once_at_the_first_change_after_it_was_armed(
    changes: list[Change], armed: dict[str, int], cut: int
) -> None:
    watches = Watches()
    for path, at in armed.items():
        watches.arm(path, at)
    watches.see(changes[:cut])
    watches.see(changes[cut:])
    fired = list(iter(watches.take, None))
    first = {
        path: next((c.sequence for c in changes if c.path == path and c.sequence > at), None)
        for path, at in armed.items()
    }
    expected = [path for path, at in first.items() if at is not None]
    assert fired == sorted(expected, key=lambda path: first[path] or 0)


@given(CHANGES, PATHS)
def test_a_watch_of_children_fires_if_one_came_or_went(changes: list[Change], path: str) -> None:
    watches = Watches()
    watches.arm_children(path, 0)
    watches.see(changes)
    is_due = any(c.came_or_went and parent_of(c.path) == path for c in changes)
    assert (watches.take() == path) is is_due
    assert watches.take() is None


@given(st.sets(st.integers(0, 99), min_size=1))
def test_exactly_one_leads_and_each_other_watches_another_one(numbers: set[int]) -> None:
    names = [f"proposal-{number}" for number in numbers]
    watched = [before(name, names) for name in names]
    assert watched.count(None) == 1
    assert len(set(watched)) == len(names)
