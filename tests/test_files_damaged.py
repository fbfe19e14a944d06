"""Bytes that are no text, or no end of brackets, in a state file: an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from sm.errors import SmError, StateError
from sm.session import registry
from sm.session.registry import AdHocSession
from sm.store.files import read_json
from sm.store.paths import Root

DAMAGED = [b"", b"nonsense", b'{"name": "\xff"}', b'{"name": 1}', b'{"more": ' + b"[" * 100_000]


class Fact(Struct, frozen=True):
    """Something kept as JSON."""

    name: str


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_whatever_is_wrong_in_a_file_is_an_error_that_names_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "fact.json"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"fact\.json' is damaged"):
        read_json(path, Fact)


def test_a_session_whose_record_holds_no_utf8_is_reported_and_passed_over(root: Root) -> None:
    for name in ("s-1", "s-2"):
        session = AdHocSession(
            name=name,
            provider="generic",
            cwd=root.path,
            config=None,
            state_root=root.path,
            created_at=1.0,
            command="true",
        )
        registry.create(root, session)
    identity = root.session("s-1").identity
    identity.write_bytes(identity.read_bytes().replace(b"generic", b"\xff"))
    reported = list[SmError]()
    assert [session.name for session in registry.all(root, reported.append)] == ["s-2"]
    assert [str(identity) in error.format_message() for error in reported] == [True]
