"""What a recording holds, and what is a difference to it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.servers import recorder
from tests.servers.compare import choose, find_differences, picture, template
from tests.servers.recorder import Cleaner, Exchange

LARGEST = 300_000
"""Bytes of all recordings."""
LABEL = "/repos/harbor/harb/issues/3/labels"


def exchange(body: Any, path: str = LABEL, *, status: int = 200, journey: str = "one") -> Exchange:
    return Exchange(journey, "POST", path, {}, None, status, {}, body)


def test_the_recordings_are_small_and_name_nobody() -> None:
    files = list(recorder.FOLDER.iterdir())
    assert sum(file.stat().st_size for file in files) < LARGEST
    for file in files:
        text = file.read_text()
        assert not re.search(r"127\.0\.0\.1|localhost|/tmp/|/home/|/root", text), file
        assert not re.findall(r"\b(?!0{30})[0-9a-f]{40}\b", text), f"a commit or token: {file}"


def test_names_commits_times_and_addresses_are_replaced() -> None:
    cleaner = Cleaner("harbor/harb-7")
    said = {
        "url": "http://127.0.0.1:4711/harbor/harb-7/pulls/3",
        "sha": "ab" * 20,
        "ref": "ab" * 20,
        "parent": "cd" * 20,
        "updated_at": "2026-11-30T04:05:06+01:00",
        "user": {"id": 77, "login": "ada", "avatar_url": "x", "email": "a@example.com"},
        "repo": {"id": 5, "full_name": "harbor/harb-7", "size": 3},
        "number": 3,
    }
    assert cleaner.clean(said) == {
        "url": "https://forge.example.com/harbor/harb/pulls/3",
        "sha": f"{1:040x}",
        "ref": f"{1:040x}",
        "parent": f"{2:040x}",
        "updated_at": "2026-01-01T00:00:00Z",
        "user": {"id": 1, "login": "ada"},
        "repo": {"id": 1, "full_name": "harbor/harb"},
        "number": 3,
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (
            "/repos/harbor/harb/pulls/3/reviews/7/comments",
            "/repos/OWNER/NAME/pulls/N/reviews/N/comments",
        ),
        ("/repos/harbor/harb/pulls/3.diff", "/repos/OWNER/NAME/pulls/N.diff"),
        ("/repos/harbor/harb/branches/fix/1", "/repos/OWNER/NAME/branches/BRANCH"),
        ("/repos/harbor/harb/compare/main...fix%2F1", "/repos/OWNER/NAME/compare/BASE...HEAD"),
        ("/harbor/harb/actions/runs/2/jobs/0/logs", "/OWNER/NAME/actions/runs/N/jobs/N/logs"),
        ("/api/repos/lookup/harbor/harb", "/api/repos/lookup/OWNER/NAME"),
        ("/api/repos/2/logs/3/4", "/api/repos/N/logs/N/N"),
    ],
)
def test_addresses_of_a_kind_are_alike(path: str, kind: str) -> None:
    assert template(path) == kind


def test_what_sm_reads_of_an_answer_is_its_picture() -> None:
    shown = picture(exchange([{"id": 3, "name": "a", "color": "00ff00"}, {"id": 4}]))
    assert shown == {
        " is a list",
        "[].id is a number",
        "[].name is a text",
        "[].name is missing",
    }


def test_a_refusal_is_its_words() -> None:
    assert picture(exchange({"message": "no", "url": "x"}, status=404)) == {".message is 'no'"}


def test_a_fake_differs_by_what_no_server_was_recorded_to_answer() -> None:
    recorded = [exchange([{"id": 3, "name": "a"}])]
    assert not find_differences([exchange([{"id": 9, "name": "b"}])], recorded, "one")
    assert find_differences([exchange([{"id": 9, "name": None}])], recorded, "two") == [
        "POST /repos/OWNER/NAME/issues/N/labels 200: only the fake: [].name is null"
    ]
    assert find_differences([exchange({"message": "no"}, status=403)], recorded, "two") == [
        "POST /repos/OWNER/NAME/issues/N/labels 403: never recorded"
    ]


def test_a_fake_does_all_that_was_recorded_in_its_journey() -> None:
    recorded = [exchange([{"id": 3, "name": "a"}]), exchange({"message": "no"}, status=403)]
    fake = [exchange([{"id": 3}])]
    assert find_differences(fake, recorded, "one") == [
        "POST /repos/OWNER/NAME/issues/N/labels 200: only the fake: [].name is missing",
        "POST /repos/OWNER/NAME/issues/N/labels 200: only the server: [].name is a text",
        "POST /repos/OWNER/NAME/issues/N/labels 403: never done by the fake",
    ]
    assert len(find_differences(fake, recorded, "another")) == 1


def test_one_exchange_of_each_kind_is_kept() -> None:
    plain, empty = exchange([{"id": 3, "name": "a"}]), exchange([])
    odd = exchange([{"id": 3, "name": None}])
    later = [replace(one, journey="later") for one in (plain, odd)]
    assert choose([plain, empty, odd, *later]) == [plain, odd]
