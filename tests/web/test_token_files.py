"""A token counts as long as its file has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.sessions.project import Project
from sm.web.guard import GuardRules
from sm.web.rights import Right, TokenFiles
from tests.plugins.page.client import Browser, make_server
from tests.plugins.page.conftest import project as project

ACTS, READS, MORE = "a" * 32, "r" * 32, "m" * 32


def write(file: Path, *lines: str) -> Path:
    file.write_text("\n".join((*lines, "")))
    file.chmod(0o600)
    return file


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "acts", ACTS), write(tmp_path / "reads", READS)


def find(rules: GuardRules, *tokens: str) -> list[Right]:
    return [rules.keys.find_secret(one) for one in tokens]


def test_what_is_added_or_removed_counts_at_once(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    acts, reads = files
    rules = GuardRules(ACTS, readers=(READS,), look=TokenFiles(ACTS, acts, reads).read)
    assert find(rules, ACTS, READS, MORE) == [Right.ACT, Right.READ, Right.NOTHING]
    write(reads, "# of the dashboard", MORE)
    assert find(rules, ACTS, READS, MORE) == [Right.ACT, Right.NOTHING, Right.READ]
    write(acts, READS)
    assert find(rules, ACTS, READS, MORE) == [Right.NOTHING, Right.ACT, Right.READ]
    assert capsys.readouterr().err == ""
    write(reads, "# nobody any more")
    assert find(rules, READS, MORE) == [Right.ACT, Right.NOTHING]
    acts.unlink()
    assert find(rules, ACTS, READS, MORE, "") == [Right.NOTHING] * 4
    said = capsys.readouterr().err
    assert said.count("no token in it lets anybody in") == 2, said
    write(acts, ACTS)
    write(reads, READS)
    assert find(rules, ACTS, READS) == [Right.ACT, Right.READ]


def test_a_token_of_the_environment_stays(files: tuple[Path, Path]) -> None:
    rules = GuardRules(MORE, look=TokenFiles(MORE, None, files[1]).read)
    assert find(rules, MORE, READS) == [Right.ACT, Right.READ]
    write(files[1], ACTS)
    assert find(rules, MORE, READS, ACTS) == [Right.ACT, Right.NOTHING, Right.READ]
    assert find(GuardRules(MORE, look=TokenFiles(MORE, None, None).read), MORE) == [Right.ACT]


def test_the_whole_server_goes_by_it(project: Project, files: tuple[Path, Path]) -> None:
    rules = GuardRules(ACTS, readers=(READS,), look=TokenFiles(ACTS, *files).read)
    browser = Browser(make_server(project.machine, rules=rules))
    paths = ("/sessions", "/", "/metrics")

    def ask(token: str) -> list[int]:
        sent = {"authorization": f"Bearer {token}"}
        return [browser.get(path, **sent).status_code for path in paths]

    assert ask(READS) == ask(ACTS) == [200] * 3
    assert ask(MORE) == [401] * 3
    write(files[1], MORE)
    files[0].unlink()
    assert ask(READS) == ask(ACTS) == [401] * 3
    assert ask(MORE) == [200] * 3
    assert browser.log_in(READS).status_code == 403
    assert browser.log_in(MORE).status_code == 303
