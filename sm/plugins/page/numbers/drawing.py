"""Draws a chart as SVG, by pygal.

The drawing is a picture: it has no script, no link, no address of another server and no style but
ours, in the one element `style` whose hash its policy names. So nothing in it could run or load
anything, also if a browser opens it by itself.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sm.base.text import printable
from sm.plugins.page.numbers.charts import SHOW, Chart, Unit

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

WIDE, NARROW = (620, 260), (340, 240)
"""Pixels of a chart, and of one for a phone: an SVG in an image is scaled with its letters."""
BAR, AROUND = 26, 90
"""Pixels of a bar that lies, and of what is above and below all of them."""
NAMES = {True: 18, False: 30}
"""Characters of a name beside a bar, in a narrow chart and in a wide one."""
MARKS = {True: 4, False: 8}
"""Labels that have room below the bars, in a narrow chart and in a wide one."""
GUIDES = 5
"""Lines behind the bars."""

STYLE = """
:root{color-scheme:light dark;--text:#1b1f24;--soft:#57606a;--line:#d6dbe1;
--c0:#0b57d0;--c1:#b26a00;--c2:#176f2c;--c3:#8430a8;--c4:#7d8791}
@media (prefers-color-scheme:dark){:root{--text:#e6e9ec;--soft:#9aa4af;--line:#323941;
--c0:#6ea3f7;--c1:#f0b35c;--c2:#6fd08c;--c3:#d9a2f5;--c4:#8a949e}}
text{font:11px system-ui,"Noto Sans","DejaVu Sans",sans-serif;fill:var(--soft);stroke:none}
.legend text{fill:var(--text)}
.background{fill:none}
.line,.guide.line{stroke:var(--line);fill:none}
.axis.x .guide.line,.horizontal .axis.y .guide.line{opacity:0}
.horizontal .axis.x .guide.line{opacity:1}
.axis.x text,.centered{text-anchor:middle}
.axis.y text{text-anchor:end}
.color-0{fill:var(--c0)}.color-1{fill:var(--c1)}.color-2{fill:var(--c2)}
.color-3{fill:var(--c3)}.color-4{fill:var(--c4)}
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; sandbox"
"""Content security policy of a drawing: no script, and no style but this one."""


def draw(chart: Chart, *, narrow: bool) -> bytes:
    """Return the chart as a file."""
    pygal = _load()
    kind = pygal.HorizontalStackedBar if chart.across else pygal.StackedBar
    width, height = NARROW if narrow else WIDE
    # A lying chart begins below.
    turn = slice(None, None, -1 if chart.across else 1)
    show = SHOW[chart.unit]
    drawn = kind(
        js=[],
        css=[],
        no_prefix=True,
        disable_xml_declaration=True,
        explicit_size=True,
        width=width,
        height=len(chart.labels) * BAR + AROUND if chart.across else height,
        legend_at_bottom=True,
        legend_at_bottom_columns=2 if narrow else len(chart.series),
        legend_box_size=10,
        show_legend=len(chart.series) > 1,
        show_x_guides=chart.across,
        show_y_guides=not chart.across,
        print_values=False,
        margin=8,
        margin_right=24,
        spacing=8,
        truncate_label=-1,
        truncate_legend=-1,
        min_scale=2,
        max_scale=GUIDES,
        value_formatter=lambda number: show(number or 0.0),
        zero=0,
    )
    drawn.x_labels = [_shorten(label, NAMES[narrow]) for label in _name_bars(chart)][turn]
    if chart.unit is Unit.PIECES:
        drawn.y_labels = _list_whole(chart)
    if not chart.across:
        drawn.show_minor_x_labels = False
        drawn.x_labels_major_every = -(-len(chart.labels) // MARKS[narrow])
    for one in chart.series:
        drawn.add(one.name, list(one.values)[turn])
    drawn.add_xml_filter(_clean)
    file: bytes | str = drawn.render()
    return file if isinstance(file, bytes) else file.encode()


def _load() -> Any:
    """Load pygal without its hook into all imports.

    The hook finds maps that are installed beside it, and is of a kind that Python has no more since
    3.12 (https://docs.python.org/3/whatsnew/3.12.html#importlib); before, it warns.
    """
    import pygal  # type: ignore[import-untyped]

    hook = getattr(pygal, "PluginImportFixer", ())
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, hook)]
    return pygal


def _name_bars(chart: Chart) -> Sequence[str]:
    """Name the bars; days of one year go without it."""
    years = {label[:4] for label in chart.labels}
    if chart.across or len(years) > 1:
        return chart.labels
    return [label[5:] for label in chart.labels]


def _list_whole(chart: Chart) -> list[int]:
    """List whole numbers up to the highest bar, a few of them."""
    bars = zip(*(one.values for one in chart.series), strict=True)
    highest = round(max(sum(filter(None, bar)) for bar in bars))
    step = -(-highest // GUIDES) or 1
    return list(range(0, highest + step, step))


def _shorten(label: str, most: int) -> str:
    label = printable(label)
    return label if len(label) <= most else f"{label[: most - 1]}…"


def _clean(root: Element) -> Element:
    """Leave nothing in the drawing but shapes, words and our style."""
    for parent in list(root.iter()):
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] in UNWANTED:
                parent.remove(child)
        for attribute in filter(_is_unwanted, list(parent.attrib)):
            del parent.attrib[attribute]
    style: Any = root.makeelement("style", {})
    style.text = STYLE
    root.insert(0, style)
    return root


UNWANTED = frozenset({"script", "style", "desc", "title", "a", "image", "use", "foreignObject"})
"""Elements that pygal draws for its own script, and those that could load anything."""


def _is_unwanted(attribute: str) -> bool:
    return attribute.startswith("on") or attribute.rpartition("}")[2] in ("id", "style", "href")
