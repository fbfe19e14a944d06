"""Each answer of the fakes rests on something that is named, or is known to rest on nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forges import answers, sources
from tests.helpers import REPOSITORY

UNPROVEN: dict[str, set[str]] = {
    "gitea": {"POST /actions/runs/([0-9]+)/(rerun|rerun-failed-jobs) 201"},
    "github": {
        "GET /actions/jobs/([0-9]+)/logs 200",
        "GET /actions/jobs/([0-9]+)/logs 404",
        "_respond() 403",
        "answer() 502",
    },
    "gitlab": {
        "check_title() 400",
        "POST /(issues|merge_requests)/([0-9]+)/notes 202",
        "POST /merge_requests 409",
        "POST /merge_trains/merge_requests/([0-9]+) 400",
        "POST /merge_trains/merge_requests/([0-9]+) 403",
        "POST /merge_trains/merge_requests/([0-9]+) 409",
        "POST /merge_requests/([0-9]+)/discussions 400",
        "find_pipe() 404",
    },
    "woodpecker": set(),
}
"""The answers that rest on nothing: a new one needs a source (tests/forges/sources.py)."""


@pytest.mark.parametrize("fake", sources.FAKES)
def test_no_answer_without_a_source_is_new(fake: str) -> None:
    assert set(sources.list_unproven(fake)) == UNPROVEN[fake]


@pytest.mark.parametrize("fake", sources.FAKES)
def test_no_document_is_named_for_an_answer_that_is_not_given(fake: str) -> None:
    given = [str(answer) for answer in answers.list_answers(fake)]
    for pattern in sources.DOCUMENTS[fake]:
        assert any(re.fullmatch(pattern, one) for one in given), pattern


def test_the_answers_are_counted_in_the_documentation() -> None:
    table = sources.format_table()
    assert table in (REPOSITORY / "docs" / "FORGES.md").read_text(), f"it has to have\n{table}"


def test_a_route_that_is_new_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.py").write_text(
        '@route("GET", "/stars")\n'
        "def stars(gitea, asked, who, _):\n"
        '    if who is None: raise RefusalError(418, "no")\n'
        "    return gitea.page(asked, [])\n"
    )
    monkeypatch.setattr(answers, "HERE", tmp_path)
    monkeypatch.setitem(answers.MODULES, "gitea", ("new.py",))
    found = list(map(str, answers.list_answers("gitea")))
    assert found == ["GET /stars 200", "GET /stars 418"]
    assert sources.list_unproven("gitea") == found
