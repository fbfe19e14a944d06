"""Who else may write what one's group may write."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from sm.store import own_group

ME = pwd.getpwuid(os.geteuid())
GID = 4711


def account(name: str, uid: int, gid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))


@pytest.mark.parametrize(
    ("name", "members", "others", "local", "expected"),
    [
        (ME.pw_name, [], [], False, True),
        (ME.pw_name, [ME.pw_name], [], False, True),
        (ME.pw_name, ["mallory"], [], True, False),
        (ME.pw_name, [], [account("mallory", 4242, GID)], True, False),
        ("staff", [], [], True, True),
        ("domain users", [], [], False, False),
    ],
)
def test_only_a_group_without_others_is_ones_own(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    members: list[str],
    others: list[pwd.struct_passwd],
    local: bool,
    expected: bool,
) -> None:
    group = grp.struct_group((name, "x", GID, members))
    monkeypatch.setattr("sm.store.own_group.grp.getgrgid", lambda _: group)
    monkeypatch.setattr("sm.store.own_group.pwd.getpwall", lambda: [ME, *others])
    (tmp_path / "group").write_text(f"root:x:0:\n{name}:x:{GID}:\n" if local else "root:x:0:\n")
    monkeypatch.setattr(own_group, "GROUPS_FILE", tmp_path / "group")
    assert own_group.is_own_group(GID) is expected


def test_a_group_without_a_name_is_not_ones_own() -> None:
    assert not own_group.is_own_group(3_999_999_999)
