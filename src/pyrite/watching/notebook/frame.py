"""The frame around all that is shown in a notebook: its style, which follows the notebook's dark or
light theme, and small parts of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyrite.drawing import escape


def framed(*parts: str) -> str:
    """HTML for one cell of a notebook. It needs nothing from elsewhere."""
    return f'<div class="pyrite"><style>{_STYLE}</style>{"".join(parts)}</div>'


def graph(svg: str) -> str:
    """A picture, with bars to scroll it if it is large."""
    return f'<div class="pyrite-graph">{svg}</div>'


def heading(
    title: str, state: str | None = None, facts: Iterable[str] = (), *, is_bad: bool = False
) -> str:
    """A line with a title, a state, and what else there is to say in a few words."""
    look = "failed" if is_bad else escape(state or "")
    badge = "" if state is None else f'<span class="pyrite-state {look}">{escape(state)}</span>'
    words = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    return f'<div class="pyrite-head"><b>{escape(title)}</b>{badge}{words}</div>'


def side_by_side(*parts: str) -> str:
    """Where the window is wide enough; otherwise one below the other."""
    return f'<div class="pyrite-parts">{"".join(f"<div>{part}</div>" for part in parts)}</div>'


def note(text: str, *, kind: str = "") -> str:
    return f'<div class="pyrite-note {kind}">{escape(text)}</div>'


def details(summary: str, text: str) -> str:
    """Text that is shown when one asks for it."""
    lines = "\n".join(map(escape, text.splitlines()))
    return f"<details><summary>{escape(summary)}</summary><pre>{lines}</pre></details>"


def bar(done: int, total: int) -> str:
    """How much is done."""
    share = 100 * done / total if total else 0
    return f'<div class="pyrite-bar"><div style="width:{share:.1f}%"></div></div>'


@dataclass(frozen=True, slots=True)
class Markup:
    """A cell of a table that is HTML already."""

    html: str


def table(titles: Sequence[str], rows: Iterable[Sequence[str | Markup]], *, texts: int = 1) -> str:
    """A table whose first `texts` columns are text, the others numbers."""

    def cell(kind: str, number: int, value: str | Markup) -> str:
        html = value.html if isinstance(value, Markup) else escape(value)
        return f"<{kind}{'' if number < texts else ' class=n'}>{html}</{kind}>"

    head = "".join(cell("th", number, title) for number, title in enumerate(titles))
    body = "".join(
        f"<tr>{''.join(cell('td', number, value) for number, value in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_DARK: Final = "--pt:#e6e8eb;--pm:#9aa3ad;--pl:#3a4048;--pb:#1b1f24;--pr:#ff9d96;"

# The explicit theme of a notebook counts more than that of the system.
_STYLE: Final = f"""
.pyrite{{--pt:#1d2129;--pm:#5f6670;--pl:#d9dce1;--pb:#ffffff;--pr:#a8231b;color:var(--pt);\
background:var(--pb);border:1px solid var(--pl);border-radius:8px;padding:10px 14px;\
font:13px/1.45 system-ui,sans-serif;max-width:100%;box-sizing:border-box}}
@media (prefers-color-scheme:dark){{body:not([data-jp-theme-light="true"]):not(.vscode-light)\
:not([data-theme="light"]) .pyrite{{{_DARK}}}}}
body[data-jp-theme-light="false"] .pyrite,body.vscode-dark .pyrite,body[data-theme="dark"] .pyrite,\
html[data-theme="dark"] .pyrite,html[theme="dark"] .pyrite{{{_DARK}}}
.pyrite-head{{display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}}
.pyrite-head span{{color:var(--pm)}}
.pyrite-head .pyrite-state{{color:#1d2129;background:#dfe3e8;border-radius:9px;padding:0 9px}}
.pyrite-head .running,.pyrite-head .starting{{background:#ffe08a}}
.pyrite-head .completed,.pyrite-head .ended{{background:#a8d8a0}}
.pyrite-head .failed,.pyrite-head .broken,.pyrite-head .killed,.pyrite-head .lost\
{{background:#f2a19a}}
.pyrite-note{{margin-top:6px;color:var(--pm);white-space:pre-wrap;overflow-wrap:anywhere}}
.pyrite-note.bad{{color:var(--pr)}}
.pyrite a{{color:inherit;text-decoration:underline}}
.pyrite-parts{{display:flex;flex-wrap:wrap;gap:0 32px;align-items:flex-start}}
.pyrite-parts>div{{max-width:100%;overflow:auto}}
.pyrite svg .edge .label{{fill:var(--pm)}}
.pyrite-graph{{overflow:auto;max-height:520px;margin-top:8px}}
.pyrite table{{border-collapse:collapse;margin:8px 0 0;color:inherit;font-size:12px}}
.pyrite tr,.pyrite th,.pyrite td{{background:none!important;color:inherit}}
.pyrite th,.pyrite td{{text-align:left;padding:2px 14px 2px 0;border:0;\
border-bottom:1px solid var(--pl);max-width:420px;overflow-wrap:anywhere}}
.pyrite th{{color:var(--pm);font-weight:normal}}
.pyrite .n{{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}}
.pyrite-bar{{background:var(--pl);border-radius:4px;height:8px;width:160px;overflow:hidden}}
.pyrite-bar div{{background:#6fb768;height:8px}}
.pyrite pre{{overflow:auto;max-height:320px;color:inherit;background:none;font-size:12px}}
""".strip()
