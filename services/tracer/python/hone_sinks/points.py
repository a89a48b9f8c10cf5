"""
The figures of a step or an evaluation by the names that sinks show: the same rules as in ../../src/sinks/metric-points.ts, which
explains them, with the same table.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TABLE = json.loads(
    (Path(__file__).parents[2] / "src" / "sinks" / "metric-names.json").read_text(encoding="utf-8")
)
_NAMES: dict[str, str] = _TABLE["names"]
_UNGROUPED: str = _TABLE["ungrouped"]
_MILLISECONDS = re.compile(r"time/.+_ms", re.ASCII)
_OTHER = re.compile(r"[^\w.-]", re.ASCII)
_MAX_NAME = 240


@dataclass(frozen=True)
class Points:
    """The figures of one step or one evaluation."""

    series: str
    """train, or val/<mode> for an evaluation."""
    step: int
    """The step, or the version that was evaluated."""
    values: dict[str, float]


def step_points(step: int, metrics: dict[str, float]) -> Points:
    return Points("train", step, _named(metrics, _train_name))


def evaluation_points(version: int, mode: str, metrics: dict[str, float]) -> Points:
    series = f"val/{_allowed(mode)}"
    return Points(series, version, _named(metrics, lambda name: f"{series}/{name}"))


def _train_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    if _MILLISECONDS.fullmatch(name):
        return f"timing_s/{name[len('time/') : -len('_ms')]}"
    return name if "/" in name else f"{_UNGROUPED}{name}"


def _named(metrics: dict[str, float], name_of: Callable[[str], str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name in sorted(metrics, key=lambda each: each.encode("utf-16-be")):
        shown = _allowed(name_of(name))
        value = metrics[name]
        if math.isfinite(value) and shown not in values:
            values[shown] = value / 1000 if _MILLISECONDS.fullmatch(name) else value
    return dict(sorted(values.items()))


def _allowed(name: str) -> str:
    # JavaScript counts UTF-16 code units.
    cut = name.encode("utf-16-le", "surrogatepass")[: _MAX_NAME * 2].decode("utf-16-le", "replace")
    parts = [_OTHER.sub(lambda found: "_" * (1 + (ord(found[0]) > 0xFFFF)), part) for part in cut.split("/")]
    return "/".join(f"_{part}" if re.fullmatch(r"\.*", part) else part for part in parts)
