"""Notes what servers answer, with names, tokens, times and ids replaced, one of each kind.

A recording is a file of JSON lines, one for each exchange, in `tests/forges/recordings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.request import SentRequest

FOLDER = Path(__file__).parents[1] / "forges" / "recordings"
NAME = "harbor/harb"
"""What the repository of each journey is called in a recording."""
HEADERS = ("content-type", "link", "x-total-count", "location")
"""The headers that `sm` reads of these servers, and that say the same each time."""
ACCOUNT = ("id", "login")
"""What is kept of an account, and of a repository."""
REPOSITORY = ("id", "full_name", "permissions")
SHA = re.compile(r"\b[0-9a-f]{40}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
PLACE = re.compile(r"https?://(?:127\.0\.0\.1|localhost):\d+")
STAMP = "2026-01-01T00:00:00Z"
ELSEWHERE = "https://forge.example.com"
NOT_KEPT = re.compile(r"\w*avatar\w*|email|\w*_email|uuid|\w*_sha1|\w*ssh\w*")
TEXT = 400
"""Characters of a body that is no JSON, from its end."""
NUMBERED = re.compile(
    r"id|\w*_id|size|\w*_count|run_number|index_in_repo|created|started|finished|updated|timestamp"
)


@dataclass(frozen=True)
class Exchange:
    """One request and its answer. `path` begins at the server's interface."""

    journey: str
    method: str
    path: str
    query: Mapping[str, str]
    sent: Any
    status: int
    headers: Mapping[str, str]
    body: Any

    def line(self) -> str:
        """The exchange as a line of JSON."""
        return json.dumps(self.__dict__, sort_keys=True, ensure_ascii=False)


@dataclass
class Book:
    """The exchanges with the server at `base`; `repository` is what this journey's is called."""

    base: str
    repository: str
    journey: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    def note(self, request: SentRequest, url: str, answer: HttpAnswer) -> None:
        """Note an exchange, if it is one with this server."""
        if not url.startswith(self.base):
            return
        split = urlsplit(url)
        cleaner = Cleaner(self.repository)
        query = dict(parse_qsl(split.query)) | {k: str(v) for k, v in request.params.items()}
        sent = None if request.body is None else json.loads(msgspec.json.encode(request.body))
        shown = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
        self.exchanges.append(
            Exchange(
                self.journey,
                request.method,
                cleaner.text(split.path.removeprefix("/api/v1")),
                {name: cleaner.text(value) for name, value in query.items()},
                cleaner.clean(sent),
                answer.status,
                {name: cleaner.text(value) for name, value in shown.items()},
                cleaner.clean(_read(answer.body)),
            )
        )


def _read(body: bytes) -> Any:
    """JSON, or the end of a text."""
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")[-TEXT:]


class Cleaner:
    """Replaces what differs from run to run, within one exchange: the same by the same."""

    def __init__(self, repository: str) -> None:
        """`repository` is its name, `OWNER/NAME`."""
        self._repository = repository
        self._commits: dict[str, str] = {}

    def text(self, text: str) -> str:
        """A text without names, commits, times and addresses of this run."""
        text = PLACE.sub(ELSEWHERE, text.replace(self._repository, NAME))
        name = self._repository.partition("/")[2]
        text = re.sub(rf"\b{re.escape(name)}\b", NAME.partition("/")[2], text)
        text = SHA.sub(lambda found: self._commit(found[0]), text)
        return TIME.sub(STAMP, text)

    def _commit(self, sha: str) -> str:
        return self._commits.setdefault(sha, f"{len(self._commits) + 1:040x}")

    def clean(self, value: Any, key: str = "") -> Any:
        """The same of JSON, without what nobody reads."""
        if isinstance(value, list):
            return [self.clean(one, key) for one in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool) and NUMBERED.fullmatch(key):
            return min(value, 1)
        if not isinstance(value, dict):
            return value
        if "login" in value:
            value = {name: value[name] for name in ACCOUNT if name in value}
        elif "full_name" in value and key:
            value = {name: value[name] for name in REPOSITORY if name in value}
        return {
            name: self.clean(one, name)
            for name, one in value.items()
            if not NOT_KEPT.fullmatch(name)
        }


@contextmanager
def recording(book: Book) -> Iterator[Book]:
    """Note what clients of `sm` in this process are answered, until the end of the block."""
    exchange, elsewhere = ForgeClient._exchange, ForgeClient._try_elsewhere

    def noting(client: ForgeClient, request: SentRequest, url: str) -> HttpAnswer:
        answer = exchange(client, request, url)
        book.note(request, url, answer)
        return answer

    def noting_page(
        client: ForgeClient, url: str, path: str, limit: int, accept: Collection[int] = ()
    ) -> HttpAnswer:
        answer = elsewhere(client, url, path, limit, accept)
        book.note(SentRequest("GET", url, ""), url, answer)
        return answer

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(ForgeClient, "_exchange", noting)
        patches.setattr(ForgeClient, "_try_elsewhere", noting_page)
        yield book


def read(file: Path) -> list[Exchange]:
    """The exchanges of a recording."""
    return [Exchange(**json.loads(line)) for line in file.read_text().splitlines()]


def find_recording(kind: str) -> Path:
    """The recording of the newest version of a server."""
    found = sorted(FOLDER.glob(f"{kind}-*.jsonl"), key=_version_of)
    assert found, f"no recording of {kind}"
    return found[-1]


def _version_of(file: Path) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", file.stem)]


def write(file: Path, exchanges: Iterable[Exchange]) -> None:
    """Keep exchanges in a file, in their order."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{one.line()}\n" for one in exchanges))
