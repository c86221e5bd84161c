"""A workload that trains models and compares them: ridge regressions on polynomials of several
degrees, each with cross-validation, as one job per model. The second run, with one more model,
trains only that one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrite.workload import Workload

FOLDS = 5


class Model(NamedTuple):
    degree: int
    penalty: float


class Trained(NamedTuple):
    model: Model
    error: float  # the mean squared error on data that the model was not trained with
    weights: tuple[float, ...]


def measure() -> Any:
    """600 noisy values of a function, in random order."""
    random = np.random.default_rng(3)
    x = random.uniform(-3, 3, 600)
    return np.column_stack([x, np.sin(x) + 0.3 * x + random.normal(0, 0.2, x.size)])


def fitted(data: Any, model: Model) -> Any:
    powers = np.vander(data[:, 0], model.degree + 1)
    penalty = model.penalty * np.eye(model.degree + 1)
    return np.linalg.solve(powers.T @ powers + penalty, powers.T @ data[:, 1])


def train(model: Model, data: Any) -> Trained:
    errors = []
    for fold in range(FOLDS):
        is_test = np.arange(len(data)) % FOLDS == fold
        weights = fitted(data[~is_test], model)
        predicted = np.vander(data[is_test, 0], model.degree + 1) @ weights
        errors.append(float(np.mean((predicted - data[is_test, 1]) ** 2)))
    return Trained(model, float(np.mean(errors)), tuple(map(float, fitted(data, model))))


def best(trained: Sequence[Trained]) -> Trained:
    return min(trained, key=lambda one: one.error)


def comparison(models: Sequence[Model]) -> Workload:
    workload = Workload()
    workload.add("data", measure)
    workload.add("models", lambda: list(models))
    workload.map("train", train, over="models", inputs={"data": "data"})
    workload.add("best", best, inputs={"trained": "train"})
    return workload


if __name__ == "__main__":
    models = [Model(degree, penalty) for degree in (1, 3, 5) for penalty in (0.1, 10.0)]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "models")
        run = comparison(models).run(workers=2, store=store).wait()
        for one in run.results["train"]:
            print(f"degree {one.model.degree}, penalty {one.model.penalty:4}: {one.error:.3f}")
        again = comparison([*models, Model(7, 0.1)]).run(workers=2, store=store).wait()
        trained = [r["job"] for r in again.table() if r["state"] == "DONE" and "[" in r["job"]]
        print(f"the second run trained {trained}")
        print(f"the best has degree {again.results['best'].model.degree}")
