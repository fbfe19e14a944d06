from __future__ import annotations

from pathlib import Path

import pytest

from sm.passes import tally
from sm.passes.fork import ELSEWHERE
from sm.passes.tally import BOUNDS, PassEnd, Tally, judge, read_sums


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        (0, PassEnd.DONE),
        (1, PassEnd.FAILED),
        (128, PassEnd.FAILED),
        (137, PassEnd.KILLED),
        (ELSEWHERE, PassEnd.ELSEWHERE),
    ],
)
def test_an_exit_code_says_how_a_pass_has_ended(code: int, ended: PassEnd) -> None:
    assert judge(code) is ended


def test_a_pass_is_counted_at_the_first_bound_that_it_keeps(tmp_path: Path) -> None:
    made = Tally(tmp_path / "passes.json")
    for took_s in (0.0, 0.025, 0.0251, 61.0):
        made.add(0, took_s)
    made.write()
    sums = read_sums(tmp_path / "passes.json")
    assert sums
    assert (sums.took[0], sums.took[1], sums.took[-1]) == (2, 1, 1)
    assert len(sums.took) == len(BOUNDS) + 1
    assert sums.took_s == pytest.approx(61.0501)


def test_it_is_not_written_for_each_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[object]()
    monkeypatch.setattr(tally, "write_json", lambda _path, value: written.append(value))
    made = Tally(tmp_path / "passes.json")
    for _ in range(100):
        made.add(0, 0.1)
        made.write()
    made.write(at_once=True)
    made.write(at_once=True)  # nothing is new
    assert len(written) == 2


@pytest.mark.parametrize("said", ["", "{}", '{"since":1,"ended":{},"took":[1],"took_s":1}'])
def test_damaged_sums_begin_anew(tmp_path: Path, said: str) -> None:
    path = tmp_path / "passes.json"
    path.write_text(said)
    path.chmod(0o600)
    made = Tally(path)
    made.add(0, 0.1)
    made.write()
    sums = read_sums(path)
    assert sums
    assert sums.ended == {PassEnd.DONE: 1}


def test_a_state_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    made = Tally(tmp_path / "gone" / "passes.json")
    made.add(0, 0.1)
    made.write()
    assert not (tmp_path / "gone").exists()
