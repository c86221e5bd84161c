"""Joins orders with a table of prices, in a processor with two inbound edges. The edge with the
prices has priority, so it is read first."""

from __future__ import annotations

from typing import Any

import pyrite
from pyrite import DAG, AbstractProcessor, from_
from pyrite import processors as p

PRICES = [("apple", 3), ("pear", 4)]
ORDERS = [("ann", "apple", 2), ("bob", "pear", 1), ("ann", "plum", 5)]


class Enrich(AbstractProcessor):
    """Inbound edge 0 has the prices. All of them are read before the first order of inbound edge 1.
    Orders without a price go to outbound edge 1."""

    def __init__(self) -> None:
        self.prices: dict[str, int] = {}

    def try_process_0(self, item: Any) -> None:
        self.prices.update([item])

    def try_process_1(self, item: Any) -> None:
        customer, fruit, count = item
        if fruit in self.prices:
            self.emit((customer, count * self.prices[fruit]), 0)
        else:
            self.emit(item, 1)


dag = DAG()
prices = dag.vertex("prices", p.read_items(PRICES))
orders = dag.vertex("orders", p.read_items(ORDERS))
enrich = dag.vertex("enrich", Enrich, local_parallelism=2)
priced = dag.vertex("priced", p.write_list("priced"))
unknown = dag.vertex("unknown", p.write_list("unknown"))
dag.edge(from_(prices).to(enrich, 0).broadcast().priority(-1))
dag.edge(from_(orders).to(enrich, 1))
dag.edge(from_(enrich, 0).to(priced))
dag.edge(from_(enrich, 1).to(unknown))

if __name__ == "__main__":
    with pyrite.instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        print("priced", sorted(pyr.list("priced")))
        print("unknown", list(pyr.list("unknown")))
