"""The table of what type checkers must reject, and what they say. `test_types.py` uses it.

Each program can use the names of `revealed.py`, `ints: Sink[int]` and
`count_of_ints: Aggregate[int, int]`."""

from __future__ import annotations

from typing import NamedTuple


class Rejected(NamedTuple):
    """A line of Python, and a part of what each type checker says about it."""

    program: str
    mypy: str
    pyright: str


NO_UPER = '"str" has no attribute "uper"', 'Cannot access attribute "uper" for class "str"'
NO_TOTL = '"Order" has no attribute "totl"', 'Cannot access attribute "totl" for class "Order"'
KEY = "key=lambda o: o.totl"

TYPOS = [
    ("words.map(lambda w: w.uper())", *NO_UPER),
    *[
        (f"{stage}.{step}", *NO_TOTL)
        for stage, steps in {
            "orders": [
                "map(lambda o: o.totl)",
                "filter(lambda o: o.totl > 0)",
                "filter_map(lambda o: o.totl)",
                "flat_map(lambda o: [o.totl])",
                "inspect(lambda o: print(o.totl))",
                "map_with(prices, lambda db, o: db[o.totl])",
                "flat_map_with(prices, lambda db, o: [o.totl])",
                "map_batches(lambda batch: [o.totl for o in batch])",
                "split(lambda o: o.totl > 0)",
                f"rebalance({KEY})",
                f"distinct({KEY})",
                "reduce(lambda a, b: a if a.totl else b)",
                f"top(1, {KEY})",
                f"sort({KEY})",
                f"group_by({KEY})",
                "join(words, left=lambda o: o.totl, right=str.upper)",
                "co_group(words, left=lambda o: o.totl, right=str.upper)",
            ],
            "grouped": [
                "reduce(lambda a, b: a if a.totl else b)",
                f"top(1, {KEY})",
                "map_values(lambda o: o.totl)",
                "map_groups(lambda key, orders: [o.totl for o in orders])",
            ],
        }.items()
        for step in steps
    ],
    *[
        (f"{stage}.aggregate(agg.count(), agg.{step})", *NO_TOTL)
        for stage in ("orders", "grouped")
        for step in (
            *("sum(lambda o: o.totl)", "mean(lambda o: o.totl)", "std(lambda o: o.totl)"),
            *("min(lambda o: o.totl)", "max(lambda o: o.totl)", "first(lambda o: o.totl)"),
            *(f"top(1, {KEY})", f"bottom(1, {KEY})", "reduce(lambda a, b: a if a.totl else b)"),
            *("to_list(lambda o: o.totl)", "to_set(lambda o: o.totl)"),
            *("to_dict(lambda o: o.totl, str)", "count_distinct(lambda o: o.totl)"),
        )
    ],
]
"""Typos inside lambdas, in every step that takes one."""

NO_SINK = 'Argument 1 to "write_to" of "Ends" has incompatible type', '"write_to"'
NO_SOURCE = 'No overload variant of "read_from" of "Pipeline" matches', '"read_from"'
NO_AGGREGATE = 'No overload variant of "aggregate" of "AllItems" matches', '"aggregate"'

UNFIT = [
    ("words.write_to(ints)", *NO_SINK),
    ('words.write_to(p.write_files("out", format="csv"))', *NO_SINK),
    ('orders.write_to(p.write_files("out", format="parquet"))', *NO_SINK),
    ('words.write_to(p.write_sql("sqlite://", "words"))', *NO_SINK),
    ('words.write_to(p.write_map("map"))', *NO_SINK),
    ('words.map(lambda w: (w, 1, 2)).write_to(p.write_map("map"))', *NO_SINK),
    ('words.write_to(p.read_list("list"))', *NO_SINK),
    ("words.write_to(print)", *NO_SINK),
    ('pipe.read_from(p.write_list("list"))', *NO_SOURCE),
    ("pipe.read_from(7)", *NO_SOURCE),
    ("words.aggregate(agg.count)", *NO_AGGREGATE),
    ("words.aggregate(count_of_ints)", 'expected "Aggregate[str, int]"', '"aggregate"'),
    ("words.map(lambda a, b: a)", "Cannot infer type", '"map"'),
    ("words.map(total_of)", "incompatible type", '"map"'),
    ("words.map_with(prices, lambda db, w: db.gt(w))", "has no attribute", '"gt"'),
    ("words.flat_map(len)", 'Argument 1 to "flat_map"', '"flat_map"'),
    ("orders.group_by(len)", 'Argument 1 to "group_by"', '"group_by"'),
    ("words.pipe(larger, 2.0)", 'Argument 1 to "pipe"', '"pipe"'),
    ('orders.pipe(larger, "2")', 'Argument 2 to "pipe"', 'parameter "than"'),
    ('words.limit("3")', 'Argument 1 to "limit"', '"limit"'),
    ("words.union([1])", 'No overload variant of "union"', '"union"'),
    (
        'words.join(words, left=len, right=len, how="outer")',
        'No overload variant of "join"',
        'No overloads for "join"',
    ),
    ("wrong: list[int] = words.collect()", '"list[str]"', 'Type "list[str]" is not assignable'),
]
"""Sinks, sources, aggregates and functions that do not fit the items."""

REJECTED = [Rejected(*row) for row in TYPOS + UNFIT]
