"""Documents of the server for pages that a real run shows only after minutes, or on many hosts."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from typing import Any

from pyrite.watching.views import (
    EdgeView,
    FailureView,
    HeavyKey,
    MemberView,
    ProcessorView,
    RunView,
    StageView,
    VertexView,
)

HOSTILE = '<img src=x onerror="document.title=1"> "&\' </script>'
Document = dict[str, Any]


def small_run(state: Any = "running", id: str = "small", name: str = "count words") -> RunView:
    """Three vertices, of which one is skewed."""
    processors = tuple(
        ProcessorView(received=n, emitted=n // 9, busy_seconds=n / 90_000)
        for n in (412_000, 171_000, 160_000, 152_000, 149_000, 141_000, 139_000, 131_000)
    )
    keys = (("'the'", 0.071), ("'of'", 0.038), ("'and'", 0.035), ("'to'", 0.031), ("'a'", 0.028))
    return RunView(
        id=id,
        job_id=f"job-{id}",
        name=name,
        kind="light",
        state=state,
        submitted=time.time() - 14,
        seen=time.time(),
        host="laptop",
        pid=4711,
        vertices=(
            VertexView(
                name="read files",
                state="running",
                emitted=182_400,
                emitted_rate=13_020.0,
                busy_seconds=3.2,
                processors=processors[:4],
                processor_count=4,
                step="read_files('books/*.txt', encoding='utf-8')",
                origin="words.py:12",
            ),
            VertexView(
                name="count words",
                state="running",
                received=1_455_000,
                emitted=0,
                received_rate=104_000.0,
                busy_seconds=88.0,
                queue_fill=7300,
                held_bytes=48_000_000,
                spilled_bytes=12_000_000,
                skipped=3,
                dead_letters=3,
                skew=2.26,
                heaviest_keys=tuple(
                    HeavyKey(
                        edge="read files -> count words",
                        key=key,
                        count=int(share * 1_455_000),
                        share=share,
                    )
                    for key, share in keys
                ),
                processors=processors,
                processor_count=8,
                fused_with=("write",),
                step="group_by(<function word, words.py line 14>, count())",
                origin="words.py:14",
            ),
            VertexView(name="write", processor_count=1, origin="words.py:16"),
        ),
        edges=(
            EdgeView(
                source="read files",
                destination="count words",
                label="distributed partitioned",
                fill=7300,
                capacity=8192,
            ),
            EdgeView(source="count words", destination="write", fill=0, capacity=1024),
        ),
        members=(
            MemberView(member="this process", host="laptop", pid=4711, memory_bytes=412 << 20),
        ),
        timings={"plan": 0.002, "start": 0.011},
    )


def failed_run(id: str = "failed") -> RunView:
    run = small_run("failed", id, "load orders")
    broken = replace(run.vertices[1], state="failed")
    return replace(
        run,
        kind="normal",
        ended=run.seen - 2,
        vertices=(replace(run.vertices[0], state="cancelled"), broken, run.vertices[2]),
        stages=(
            StageView(label="read files", done=200, total=200),
            StageView(label="count words", done=61, total=64),
            StageView(label="write", done=0, total=1),
        ),
        failure=FailureView(
            message="vertex 'count words': <function word, words.py line 14> raised ValueError: "
            "invalid literal for int() with base 10: 'n/a'",
            vertex="count words",
            item="{'order': 81231, 'amount': 'n/a', 'customer': 'Ada'}",
            traceback='Traceback (most recent call last):\n  File "words.py", line 14, in word\n'
            "    return int(order['amount'])\nValueError: invalid literal for int() with base 10: "
            "'n/a'",
        ),
        page="http://127.0.0.1:4040/jobs/",
    )


def large_run(count: int = 300, id: str = "large", *, numbered: bool = True) -> RunView:
    """Many sources that are cleaned and joined in steps; or, if not numbered, without a pattern."""
    chosen = random.Random(7)
    words = [
        "orders",
        "users",
        "clicks",
        "stock",
        "prices",
        "events",
        "mails",
        "visits",
        "routes",
        "ratings",
    ]
    verbs = [
        "read",
        "clean",
        "parse",
        "join",
        "rank",
        "split",
        "merge",
        "score",
        "count",
        "filter",
        "sort",
    ]
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    if numbered:
        lines = (count - 12) // 3
        for n in range(1, lines + 1):
            for step in ("load", "clean", "score"):
                names.append(f"{step} {n}")
            edges += [(f"load {n}", f"clean {n}"), (f"clean {n}", f"score {n}")]
        tail = ["users", "prices", "join users", "join prices", "rank", "top 100", "by region"]
        tail += ["by day", "report", "archive", "alerts", "mail"]
        edges += [(f"score {n}", "join users") for n in range(1, lines + 1)]
        edges += [("users", "join users"), ("join users", "join prices"), ("prices", "join prices")]
        edges += [("join prices", "rank"), ("rank", "top 100"), ("join prices", "by region")]
        edges += [("join prices", "by day"), ("by region", "report"), ("by day", "report")]
        edges += [("top 100", "report"), ("join prices", "archive"), ("rank", "alerts")]
        edges += [("alerts", "mail"), ("report", "mail")]
        names += tail
    else:
        for n in range(count):
            names.append(
                f"{chosen.choice(verbs)} {chosen.choice(words)} {chr(97 + n % 26)}{n // 26}"
            )
        for n in range(1, count):
            for _ in range(chosen.choice((1, 1, 2))):
                edges.append((names[max(0, n - chosen.randint(1, 14))], names[n]))
    vertices = []
    for n, name in enumerate(names):
        done = n < len(names) * 0.35
        state: Any = "completed" if done else "running" if n < len(names) * 0.75 else "waiting"
        seen = chosen.randint(1000, 900_000)
        moves = 0.0 if state != "running" else chosen.random() * 20_000
        vertices.append(
            VertexView(
                name=name,
                state=state,
                received=0 if state == "waiting" else seen,
                emitted=0 if state == "waiting" else int(seen * 0.8),
                received_rate=moves,
                emitted_rate=0.8 * moves,
                busy_seconds=chosen.random() * 9,
                processor_count=4,
            )
        )
    return RunView(
        id=id,
        job_id=id,
        name="nightly report of everything" if numbered else "a graph without patterns",
        kind="light on members",
        state="running",
        submitted=time.time() - 95,
        seen=time.time(),
        host="build-7",
        pid=99,
        vertices=tuple(vertices),
        edges=tuple(
            EdgeView(source=a, destination=b, fill=chosen.randint(0, 1024), capacity=1024)
            for a, b in dict.fromkeys(edges)
        ),
        members=tuple(
            MemberView(member=f"member {n}", host="build-7", pid=100 + n, memory_bytes=n * 90 << 20)
            for n in range(1, 5)
        ),
    )


def hostile_run() -> RunView:
    run = small_run("failed", "hostile", HOSTILE)
    vertex = replace(
        run.vertices[1],
        name=HOSTILE,
        step=HOSTILE,
        origin=HOSTILE,
        heaviest_keys=(HeavyKey(edge=HOSTILE, key=HOSTILE, count=1, share=0.5),),
    )
    return replace(
        run,
        ended=run.seen,
        vertices=(run.vertices[0], vertex),
        edges=(EdgeView(source="read files", destination=HOSTILE, label=HOSTILE),),
        failure=FailureView(message=HOSTILE, vertex=HOSTILE, item=HOSTILE, traceback=HOSTILE),
        page="javascript:alert(1)",
        members=(MemberView(member=HOSTILE),),
        stages=(StageView(label=HOSTILE, done=1, total=2),),
    )


def document(run: RunView) -> Document:
    """What `GET /api/runs/ID` answers."""
    points = 60
    times = [run.seen - points + n for n in range(points)]
    wave = [0.6 + 0.4 * math.sin(n / 6) + 0.1 * math.sin(n * 1.7) for n in range(points)]
    history = {
        vertex.name: {
            "t": times,
            "received_rate": [vertex.received_rate * w for w in wave],
            "emitted_rate": [vertex.emitted_rate * w for w in wave],
        }
        for vertex in run.vertices
    }
    return {
        **run.to_json(),
        "seconds": run.seconds,
        "items_in": run.items_in,
        "items_out": run.items_out,
        "can_cancel": not run.has_ended,
        "history": history,
    }


def row(run: RunView) -> Document:
    """A run in the answer of `GET /api/runs`."""
    names = ("id", "name", "kind", "state", "submitted", "ended", "host", "pid")
    return {
        **{name: getattr(run, name) for name in names},
        "seconds": run.seconds,
        "items_in": run.items_in,
        "items_out": run.items_out,
        "rate_in": sum(v.emitted_rate for v in run.vertices[:1]),
        "failure": run.failure.message if run.failure else None,
        "can_cancel": not run.has_ended,
    }


def many_runs() -> list[RunView]:
    names = [
        "count words",
        "nightly report",
        "load orders",
        "clean clicks",
        "join users",
        "rank pages",
    ]
    states: list[Any] = ["completed", "completed", "completed", "failed", "cancelled", "lost"]
    kinds: list[Any] = ["light", "normal", "light on members", "durable"]
    runs = [small_run(), failed_run()]
    for n in range(40):
        run = failed_run(f"old-{n}") if states[n % 6] == "failed" else small_run(id=f"old-{n}")
        began = run.submitted - 400 * (n + 1) ** 1.5
        runs.append(
            replace(
                run,
                name=names[n * 7 % 6],
                state=states[n % 6],
                kind=kinds[n * 5 % 4],
                submitted=began,
                ended=began + 3.0 * (n * 13 % 29) + 0.07,
            )
        )
    return runs


def workload(count: int = 200, phase: str = "running") -> Document:
    """A fan of loads that are cleaned, and a few jobs after them, on eight workers."""
    chosen = random.Random(3)
    began = time.time() - 118
    loads = (count - 8) // 2
    names = [f"load-{n:03}" for n in range(loads)] + [f"clean-{n:03}" for n in range(loads)]
    tail = [
        "join",
        "features",
        "train-linear",
        "train-trees",
        "compare",
        "report",
        "publish",
        "notify",
    ]
    names += tail[: count - len(names)]
    edges = [[f"load-{n:03}", f"clean-{n:03}"] for n in range(loads)]
    edges += [[f"clean-{n:03}", "join"] for n in range(loads)]
    edges += [["join", "features"], ["features", "train-linear"], ["features", "train-trees"]]
    edges += [["train-linear", "compare"], ["train-trees", "compare"], ["compare", "report"]]
    edges += [["report", "publish"], ["report", "notify"]]
    free = [began + 0.2 * n for n in range(8)]
    jobs = []
    for n, name in enumerate(names):
        worker = min(range(8), key=lambda w: free[w])
        start = free[worker]
        took = chosen.uniform(2, 9)
        state = "WAITING"
        if n < 8:
            state = "SKIPPED"
        elif start + took < time.time() - 4 and n < len(names) - 8:
            state = "FAILED" if n in (57, 121) else "TIMEOUT" if n == 90 else "DONE"
        elif start < time.time() and n < len(names) - 8:
            state = "RUNNING"
        ran = state in ("DONE", "FAILED", "TIMEOUT", "RUNNING")
        if ran:
            free[worker] = math.inf if state == "RUNNING" else start + took
        jobs.append(
            {
                "job": name,
                "state": state,
                "attempt": 2 if state == "FAILED" else 1 if ran else 0,
                "worker": f"worker-{worker + 1}" if ran else None,
                "started": start if ran else None,
                "ended": start + took if ran and state != "RUNNING" else None,
                "seconds": took if ran and state != "RUNNING" else None,
                "error": "ValueError: the column 'price' is missing" if state == "FAILED" else None,
                "selected": True,
                "why": None if state == "SKIPPED" else "the function `load` has changed",
            }
        )
    counts: dict[str, int] = {}
    for job in jobs:
        counts[str(job["state"])] = counts.get(str(job["state"]), 0) + 1
    return {
        "key": "nightly",
        "label": "nightly-features",
        "store": "/data/runs/nightly-features",
        "phase": phase,
        "started": began,
        "ended": None,
        "seconds": time.time() - began,
        "critical_path_seconds": 58.0,
        "problem": None,
        "counts": counts,
        "jobs": jobs,
        "edges": edges,
        "can_cancel": True,
    }


def deployment(peers: int = 8) -> Document:
    chosen = random.Random(5)
    now = time.time()
    history: list[Document] = []
    rows: list[Document] = []
    for n in range(1, peers + 1):
        name, at, state, part = f"peer-{n:02}", now - 300 + 6 * n, "idle", None
        history.append({"t": at, "peer": name, "state": "idle", "part": None})
        k = 0
        while at < now - 15:
            k += 1
            part = {
                "job": "job-orders",
                "task": chosen.choice(["read", "count", "write"]),
                "part": k,
            }
            for state, least, most in (("acking", 0.5, 2), ("active", 15, 60), ("sealing", 2, 6)):
                history.append({"t": at, "peer": name, "state": state, "part": part})
                at += chosen.uniform(least, most)
            if chosen.random() < 0.4:
                history.append({"t": at, "peer": name, "state": "idle", "part": None})
                at += chosen.uniform(2, 12)
        mine = [each for each in history if each["peer"] == name and each["t"] <= now]
        rows.append(
            {
                "name": name,
                "address": f"10.0.0.{1 + n % 3}:{40000 + n}",
                "state": mine[-1]["state"],
                "offer": k,
                "part": mine[-1]["part"],
                "since": mine[-1]["t"],
            }
        )
    tasks = [
        {"name": "read", "kind": "concurrent", "parts": 24, "complete": 21, "peers": 3},
        {"name": "count", "kind": "concurrent", "parts": 16, "complete": 4, "peers": 4},
        {"name": "write", "kind": "sequential", "parts": 1, "complete": 0, "peers": 1},
    ]
    job = {"has_ended": True, "tasks": [], "waits_for": None, "failure": None, "parts": 0}
    job["complete"] = 0
    return {
        "seen": now,
        "coordinators": ["10.0.0.1:39000", "10.0.0.2:39000"],
        "peers": rows,
        "history": sorted((e for e in history if e["t"] <= now), key=lambda each: each["t"]),
        "jobs": [
            {
                **job,
                "id": "job-orders",
                "name": "count orders",
                "status": "running",
                "has_ended": False,
                "submitted": now - 290,
                "tasks": tasks,
                "parts": 41,
                "complete": 25,
            },
            {
                **job,
                "id": "job-users",
                "name": "merge users",
                "status": "starting",
                "has_ended": False,
                "submitted": now - 20,
                "waits_for": "waits for peers: 8 of 8 are on parts of other jobs",
            },
            {
                **job,
                "id": "job-old",
                "name": "count clicks",
                "status": "completed",
                "submitted": now - 4000,
            },
            {
                **job,
                "id": "job-bad",
                "name": "load prices",
                "status": "failed",
                "submitted": now - 9000,
                "failure": "vertex 'parse': ValueError: could not convert string to float: '12,5'",
            },
        ],
        "queues": [
            {"job": "job-orders", "task": "count", "edge": "read -> count", "messages": 1312}
            | {"in_flight": 64},
            {"job": "job-orders", "task": "write", "edge": "count -> write", "messages": 118}
            | {"in_flight": 8},
            {"job": "job-users", "task": "merge", "edge": "read -> merge", "messages": 0}
            | {"in_flight": 0},
        ],
        "problem": None,
    }
