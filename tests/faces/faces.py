"""The faces of the world: each is read as whoever looks at it reads it, and then compared."""

from __future__ import annotations

import html
import io
import json
import re
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import click
import msgspec
from prometheus_client.parser import text_string_to_metric_families as parse_metrics
from rich.console import Console

from sm.base.text import one_line
from sm.cli.invocation import Invocation
from sm.cli.need_lines import NOTHING, UNSEEN
from sm.cli.root import cli
from sm.cli.status import Watched, open_watched
from sm.plugins.top.feed import Feed, Seen
from sm.plugins.top.lines import UNICODE, Look
from sm.plugins.top.splash import draw
from sm.views.figures import OfSession
from sm.views.projects import ProjectsReader
from tests.faces.world import World
from tests.plugins.page.client import Browser, make_server

WIDE, HIGH = 900, 120
NUMBER = re.compile(r"needs you: (\d+)")
NEED_KEY = re.compile(r'<li class="need [^>]* data-key="([^"]*)"')
ROW = re.compile(r'<tr class="in-[^"]*" data-key="([^"]*)".*?</tr>', re.DOTALL)
CHIP = re.compile(r'<td class="state"><span class="chip [^>]*>([^<]*)</span>')
COST = re.compile(r'<span title="Cost">([^<]*)</span>')
AGENTS = "HTTP /sessions"
"""It says what agents of this machine are at, which needs no configuration."""
PART = 0.5
UNUSABLE = 2
"""The exit code of a command whose configuration cannot be used."""


class Row(msgspec.Struct, frozen=True):
    """What a face says of a session; None for what it does not say."""

    state: str | None = None
    cost: str | None = None


class Face(msgspec.Struct):
    """What one face says: the needs as it has them, the sessions, and all of its text."""

    name: str
    needs: list[str] | None = None
    """The keys of the needs, in order."""
    number: int | None = None
    rows: dict[str, Row] | None = None
    text: str = ""
    wrong: list[str] = []
    """What it says that cannot be so, whatever others say."""
    unusable: bool = False
    """Whether it has said nothing but that the configuration cannot be used."""


class Faces:
    """All of them, those that go on for long begun before the first step."""

    def __init__(self, world: World) -> None:
        """Begin to watch."""
        self.world = world
        context = click.Context(cli, info_name="sm", obj=Invocation())
        self.watched: Watched = open_watched(context, tuple(world.projects))
        reader = ProjectsReader(world.machine, world.projects)
        self.feed = Feed(world.machine, reader)
        self.browser = Browser(make_server(world.machine))
        assert self.browser.log_in().status_code < 400
        self.known: list[dict[str, Any]] = []
        """The needs that `sm needs` has told last."""

    def read(self, *, wholly: bool) -> list[Face]:
        """Read all of them `wholly`, else those that tell all in JSON and half of the others."""
        others = (
            self._read_text,
            self._read_watch,
            self._read_top,
            self._read_page,
            self._read_http,
            self._read_metrics,
        )
        chosen = [one for one in others if wholly or self.world.dice.random() < PART]
        return [self._read_needs(), self._read_status(), *(f for one in chosen for f in one())]

    def _read_needs(self) -> Face:
        code, said = self.world.sm("needs", "--json")
        if code == UNUSABLE:
            return Face("sm needs --json", text=said, unusable=True)
        self.known = json.loads(said)
        face = Face("sm needs --json", [one["key"] for one in self.known], len(self.known))
        face.wrong = _check_code(code, len(self.known), said)
        return face

    def _read_text(self) -> Iterator[Face]:
        code, said = self.world.sm("needs")
        face = Face("sm needs", text=said, unusable=code == UNUSABLE)
        if not face.unusable:
            found = said.splitlines()
            lines = [one for one in found if one != NOTHING and not one.startswith(UNSEEN)]
            face.needs, face.number = self._find_lines(lines), len(lines)
            face.wrong = _check_code(code, len(lines), said)
        yield face
        code, said = self.world.sm("status")
        face = Face("sm status", text=said, unusable=code == UNUSABLE)
        if not face.unusable:
            lines = [one for one in said.splitlines() if one.startswith("needs you ")]
            face.needs, face.number = self._find_lines(lines), len(lines)
        yield face

    def _read_status(self) -> Face:
        code, said = self.world.sm("status", "--json")
        face = Face("sm status --json", text=said, unusable=code == UNUSABLE)
        if not face.unusable:
            seen = json.loads(said)
            face.needs = _sort([need["key"] for one in seen for need in one["needs"]])
            rows = [row for one in seen for row in one["sessions"]]
            face.rows = {row["session"]: Row(row["phase"], _cost(row["figures"])) for row in rows}
            kin = [row for one in seen for row in one["ad_hoc"]]
            face.rows |= {row["id"]: Row(row["state"], _cost(row["figures"])) for row in kin}
            own = [row["need"]["key"] for row in (*rows, *kin) if row["need"]]
            if not set(own) <= set(face.needs):
                face.wrong = [f"a row of sm status needs what is in no list: {said}"]
        return face

    def _find_lines(self, lines: list[str]) -> list[str]:
        """The keys of the needs that these lines tell, each whole, with its command at the end."""
        found = []
        for line in lines:
            fitting = [
                one["key"]
                for one in self.known
                if line.endswith(one_line(f"{one['text']}: {one['command']}"))
                and (one["name"] or one["project"]) in line
            ]
            found.append(fitting[0] if fitting else line)
        return found

    def _read_watch(self) -> Iterator[Face]:
        out = io.StringIO()
        terminal = Console(file=out, width=WIDE, color_system=None)
        terminal.print(self.watched.draw(WIDE, HIGH))
        text = out.getvalue()
        told = NUMBER.search(text)
        number = int(told[1]) if told else 0
        assert told or NOTHING in text, text
        yield Face("sm status --watch", self._find_in(text), number, text=text)

    def _find_in(self, text: str) -> list[str]:
        """The keys of the needs whose sentence and command are in a text."""
        whole = " ".join(text.split())
        return [
            one["key"]
            for one in self.known
            if _squeeze(one["text"])[:300] in whole and one["command"] in text
        ]

    def _read_top(self) -> Iterator[Face]:
        seen: Seen = self.feed.read()
        drawn = draw(seen, WIDE, HIGH, Look(seen_at(), UNICODE))
        text = "\n".join("".join(words for words, _ in line) for line in drawn)
        told = re.search(r"(\d+) needs? you", text)
        assert told, text
        yield Face(
            "sm top",
            [one.key for one in seen.needs],
            int(told[1]),
            {row.id: Row(str(row.state), _cost(row.figures)) for row in seen.rows},
            text=f"{text}\n{' '.join(seen.problems)}",
        )

    def _read_page(self) -> Iterator[Face]:
        for name, path in (("page", "/"), ("page's changes", "/page/changes?since=")):
            answer = self.browser.get(path)
            text = html.unescape(answer.text)
            if answer.status_code >= 400:
                yield Face(name, text=text, unusable=True)
                continue
            rows = {
                found[1]: Row(_find(CHIP, found[0]), _find(COST, found[0]))
                for found in ROW.finditer(answer.text)
            }
            needs = [html.unescape(key) for key in NEED_KEY.findall(answer.text)]
            yield Face(name, needs, len(needs), rows, text=text)

    def _read_http(self) -> Iterator[Face]:
        answer = self.browser.get("/needs")
        if answer.status_code >= 400:
            yield Face("HTTP /needs", text=answer.text, unusable=True)
        else:
            needs = answer.json()["needs"]
            face = Face("HTTP /needs", [one["key"] for one in needs], len(needs))
            if self._know(needs) != self._know(self.known):
                face.wrong = [f"HTTP /needs has {needs}, sm needs --json {self.known}"]
            yield face
        answer = self.browser.get("/sessions")
        assert answer.status_code == 200, answer.text
        rows = answer.json()["sessions"]
        yield Face(
            AGENTS,
            rows={one["id"]: Row(cost=_cost(one["figures"])) for one in rows},
            text=answer.text,
        )

    def _know(self, needs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is to be the same; since when is as long ago as ever where the clock was set."""
        left_out = {"since"} if self.world.clock_s else set()
        return [{key: one[key] for key in one.keys() - left_out} for one in needs]

    def _read_metrics(self) -> Iterator[Face]:
        answer = self.browser.get("/metrics")
        assert answer.status_code == 200, answer.text
        found = {one.name: one.samples for one in parse_metrics(answer.text)}
        by_kind = {one.labels["kind"]: int(one.value) for one in found["sm_needs"] if one.value}
        parts = {one.labels["part"]: one.value for one in found["sm_part_up"]}
        down = [name for name, up in parts.items() if not up]
        face = Face("/metrics", number=sum(by_kind.values()), text=f"cannot read {down}")
        if not self.world.is_config_broken:
            kinds = Counter(one["kind"] for one in self.known)
            if by_kind != kinds:
                face.wrong = [f"/metrics counts {by_kind}, sm needs has {dict(kinds)}"]
            if down:
                face.wrong = [*face.wrong, f"/metrics cannot read {down}"]
        yield face


def _check_code(code: int, needs: int, said: str) -> list[str]:
    return [] if code == (1 if needs else 0) else [f"sm needs ends with {code}: {said}"]


def seen_at() -> float:
    """Now; the ages in what is drawn are nobody's matter here."""
    import time

    return time.time()


def _cost(figures: OfSession | dict[str, Any]) -> str | None:
    found = figures.get("cost")
    if found is None:
        return None
    return found["shown"] if isinstance(found, dict) else found.shown


def _find(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return html.unescape(found[1]).strip() if found else None


def _squeeze(text: str) -> str:
    return " ".join(one_line(text).split())


def _sort(keys: list[str]) -> list[str]:
    return list(dict.fromkeys(keys))


def compare(faces: list[Face], *, is_config_broken: bool, there: Container[str]) -> list[str]:
    """What of them differs, in sentences. Sessions that are `there` are not on this machine."""
    if is_config_broken:
        return [
            f"{face.name} does not say that the configuration cannot be used"
            for face in faces
            if "onfiguration" not in face.text and not face.unusable and face.name != AGENTS
        ]
    first = faces[0]
    told = [f"{face.name} cannot be read: {face.text[:500]}" for face in faces if face.unusable]
    told += [words for face in faces for words in face.wrong]
    assert first.needs is not None or told
    for face in faces:
        if face.needs is not None and sorted(face.needs) != sorted(first.needs or []):
            told.append(f"{first.name} has {first.needs}, {face.name} {face.needs}")
        if face.number is not None and face.number != first.number:
            told.append(f"{first.name} has {first.number} needs, {face.name} {face.number}")
    told += _compare_rows([face for face in faces if face.rows is not None], there)
    return told


def _compare_rows(faces: list[Face], there: Container[str]) -> Iterator[str]:
    first, *others = faces
    for face in others:
        ours, theirs = first.rows or {}, face.rows or {}
        for name in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(name), theirs.get(name)
            if one is None or other is None:
                who = first.name if one is None else face.name
                if not (face.name == AGENTS and (one is None or name in there)):
                    yield f"{who} does not have {name}"
                continue
            for what in ("state", "cost"):
                said, says = getattr(one, what), getattr(other, what)
                if said != says and not (what == "state" and says is None):
                    yield f"{what} of {name}: {first.name} has {said}, {face.name} {says}"
