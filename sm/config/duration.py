"""Durations as people write them: `30s`, `45m`, `3h`, `1d`, `1h30m`, or a number of seconds."""

from __future__ import annotations

import re

UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
PATTERN = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)([dhms])")


class Seconds(float):
    """A duration in seconds. It has its own type so that the schema reads it by `parse`."""


def parse(value: object) -> Seconds:
    """Read seconds from `"3h"`, `"1h30m"`, `90` or `"90"`.

    Raises:
        ValueError: it is none of these, or negative.

    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"Expected a duration such as 30s or 3h, got {value!r}")
    if isinstance(value, str) and not re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        seconds = _parse_units(value.strip())
    else:
        seconds = float(str(value))  # a whole number beyond all floats gives inf, no error
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"Expected a duration of zero or more, got {value!r}")
    return Seconds(seconds)


def _parse_units(text: str) -> float:
    parts = PATTERN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise ValueError(f"Expected a duration such as 30s or 3h, got {text!r}")
    return sum(float(number) * UNITS_S[unit] for number, unit in parts)


def show(seconds: float) -> str:
    """Write a duration in the shortest form of `parse`: 5400 is `1h30m`, 0.5 is `0.5s`."""
    whole, text = int(seconds), ""
    if whole != seconds:
        return f"{seconds:.6f}".rstrip("0") + "s"
    for unit, size in UNITS_S.items():
        count, whole = divmod(whole, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"
