"""A section of several kinds: another forge is one more struct in the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from sm.base.errors import UsageError
from sm.config.convert import FoundSection, convert, list_key_paths
from sm.config.forges import ForgeSettings, LocalSettings
from sm.config.read import read_document
from sm.config.reference import list_keys
from sm.config.section import Section


class OtherSettings(ForgeSettings, frozen=True, tag="other"):
    """A server elsewhere."""

    url: Annotated[str, Meta(description="where it is")]
    token: Annotated[str, Meta(description="who asks")] = ""

    @property
    def place(self) -> str:
        """The server."""
        return self.url


class Shape(Section, frozen=True):
    """A project of a time with two kinds of forges."""

    forge: LocalSettings | OtherSettings


def made(tmp_path: Path, text: str) -> Shape:
    path = tmp_path / "sm.yaml"
    path.write_text(text)
    document = read_document(path, path.name)
    return convert(FoundSection(document, (), document.data, document.data), Shape)


def test_the_kind_decides_which_section_it_is(tmp_path: Path) -> None:
    assert made(tmp_path, "forge: {kind: local, path: f}").forge == LocalSettings(
        path=tmp_path / "f"
    )
    other = made(tmp_path, "forge: {kind: other, url: x}").forge
    assert other == OtherSettings(url="x")
    assert (other.kind, other.place) == ("other", "x")


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        ("{path: f}", "missing key 'forge.kind' in 'sm.yaml': local: a folder beside a bare"),
        ("{url: x}", "other: a server elsewhere"),
        ("{kind: hub, path: f}", "'forge.kind' in 'sm.yaml' (line 1): expected local or other"),
        ("{kind: 7}", "expected local or other, got 7"),
        ("{kind: [local]}", "expected local or other, got a list"),
        ("{kind: other, path: f}", "unknown key 'forge.path' in 'sm.yaml' (line 1): known there"),
        ("{kind: other, urk: f}", "unknown key 'forge.urk' in 'sm.yaml' (line 1): did you mean"),
        ("{kind: other}", "missing key 'forge.url' in 'sm.yaml': where it is"),
        ("{kind: other, url: 7}", "wrong value for 'forge.url' in 'sm.yaml' (line 1): expected te"),
        ("other", "wrong value for 'forge' in 'sm.yaml' (line 1): expected a section of keys"),
    ],
)
def test_what_is_wrong_is_told_of_that_kind(tmp_path: Path, forge: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        made(tmp_path, f"forge: {forge}")
    assert said in error.value.message


def test_a_missing_section_is_told_by_what_all_kinds_are_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        made(tmp_path, "forge:")
    assert "missing key 'forge'" in error.value.message
    assert error.value.message.endswith(": where issues, pull requests and reviews are")


def test_every_key_of_every_kind_is_documented_once() -> None:
    assert list(list_key_paths(Shape)) == [
        ("forge", name) for name in ("kind", "path", "url", "token")
    ]
    described = {key.path: key for key in list_keys(Shape)}
    assert [*described] == ["forge.kind", "forge.path", "forge.url", "forge.token"]
    assert described["forge.kind"].type == "`local` or `other`"
    assert described["forge.kind"].description.endswith("other: a server elsewhere")
