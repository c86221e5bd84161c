"""A custom source and a filter that find primes. Four processors check a part of the numbers
each."""

from __future__ import annotations

import pyrite
from pyrite import DAG, AbstractProcessor, ProcessorContext, between, traverse
from pyrite import processors as p

LIMIT = 1000


class Candidates(AbstractProcessor):
    """Each of n processors emits every n-th odd number. The traverser is made once, because it
    keeps the position between calls."""

    def init(self, context: ProcessorContext) -> None:
        self.rest = traverse(
            range(3 + 2 * context.global_index, LIMIT, 2 * context.total_parallelism)
        )

    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


def is_prime(n: int) -> bool:
    return all(n % divisor for divisor in range(3, int(n**0.5) + 1, 2))


dag = DAG()
candidates = dag.vertex("candidates", Candidates, local_parallelism=4)
primes = dag.vertex("primes", p.filter(is_prime), local_parallelism=4)
total = dag.vertex("total", p.accumulate(0, lambda n, prime: n + 1), local_parallelism=1)
sink = dag.vertex("sink", p.write_list("total"), local_parallelism=1)
dag.edge(between(candidates, primes).isolated())
dag.edge(between(primes, total).all_to_one())
dag.edge(between(total, sink))

if __name__ == "__main__":
    with pyrite.instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        print("there are", pyr.list("total")[0], "odd primes below", LIMIT)
