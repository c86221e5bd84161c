"""URLs of deployments, and what is opened by them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.durable.store.deployment import Deployment, hidden
from pyrite.durable.store.opening import deployment_at, open_store
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import StoreError

HOSTS = st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True)
CLUSTERS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(
    hosts=st.lists(st.tuples(HOSTS, st.integers(1, 65535)), min_size=1, max_size=3),
    cluster=CLUSTERS,
    nats=st.lists(TEXT, max_size=3),
    secret=st.none() | TEXT,
    session=st.floats(0.1, 100),
)
def test_a_url_says_all_of_a_deployment(
    hosts: list[tuple[str, int]], cluster: str, nats: list[str], secret: str | None, session: float
) -> None:
    places = [f"{host}:{port}" for host, port in hosts]
    options = [f"nats={quote(each, safe='')}" for each in nats] + [f"session={session!r}"]
    if secret is not None:
        options.append(f"secret={quote(secret, safe='')}")
    found = Deployment.parse(f"zk://{','.join(places)}/{cluster}?{'&'.join(options)}")
    assert found == Deployment(tuple(places), cluster, tuple(nats), secret, session)
    assert repr(found) == repr(replace(found, secret="another"))


@given(st.text())
def test_any_other_text_is_a_clear_error_or_a_deployment(text: str) -> None:
    with suppress(StoreError):
        assert Deployment.parse("zk://" + text).hosts


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("zk://h:2181", "the name of the cluster is missing in zk://h:2181; write it after the h"),
        ("zk://h:2181/?nats=x", "the name of the cluster is missing"),
        ("zk://h/a/b", "'a/b' is not a name of a cluster"),
        ("zk://h/..", "'..' is not a name of a cluster"),
        ("zk:///prod", "'' is not a host and port"),
        ("zk://h:99999/prod", "'h:99999' is not a host and port"),
        ("zk://h,/prod", "'' is not a host and port"),
        (
            "zk://h/prod?nat=x",
            "'nat' in zk://h/prod.nat=x has no value or is not one of the options",
        ),
        ("zk://h/prod?nats=", "'nats' in zk://h/prod.nats= has no value"),
        (
            "zk://h/prod?secret=a&secret=b",
            r"zk://h/prod.secret=...&secret=... has 'secret' 2 times",
        ),
        ("zk://h/prod?session=soon", "session=soon .* is not a number of seconds"),
        ("zk://h/prod?session=nan", "session=nan .* is not a number of seconds"),
        ("redis://h/0", "redis://h/0 is neither a folder nor the URL of a deployment"),
    ],
)
def test_a_bad_url_is_a_clear_error(url: str, why: str) -> None:
    with pytest.raises(StoreError, match=why):
        open_store(url)


def test_errors_do_not_tell_secrets() -> None:
    with pytest.raises(StoreError) as failed:
        open_store("zk://h/?secret=word&nats=nats://user:word@h")
    assert "word" not in str(failed.value)
    assert hidden("folder") == "folder"


def test_anything_else_is_a_folder(tmp_path: Path) -> None:
    for place in (tmp_path / "a", str(tmp_path / "b:c")):
        assert deployment_at(place) is None
        store = open_store(place)
        assert isinstance(store, SqliteStore)
        store.close()


def test_without_kazoo_it_says_what_to_install() -> None:
    program = """
import sys
sys.modules["kazoo"] = None
from pyrite.durable.store.opening import open_store
try:
    open_store("zk://h/prod")
except Exception as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert said == (
        "a deployment needs the package kazoo; install it with: pip install 'pyrite[durable]'\n"
    )
