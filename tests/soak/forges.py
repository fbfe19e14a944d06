"""bin/soak forges [--record] [NAME…]: the journeys on real servers, each with its runner.

The variables of `tests/servers/programs.py` name the programs. Prints a table of Markdown for
docs/FORGES.md. With --record, if no journey has failed, what the servers answer takes the place of
their recordings in `tests/forges/recordings`, against which the fakes are held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from tests.servers import recorder
from tests.servers.compare import choose
from tests.servers.programs import PROGRAMS, VARIABLES

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS = "tests/servers/test_servers.py"
CLASSES = {"gitea": "TestGitea", "forgejo": "TestForgejo", "woodpecker": "TestWoodpecker"}
SHOWN = 100


@dataclass(frozen=True)
class Outcome:
    """What became of the journeys on a server; `failed` are names, with what was said."""

    server: str
    passed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    left_out: int = 0


def sum_up(report: str, server: str) -> Outcome:
    """What a run of pytest says, as JUnit's XML."""
    found = Outcome(server)
    for case in ElementTree.fromstring(report).iter("testcase"):
        said = [one.get("message", "") for one in case if one.tag in ("failure", "error")]
        if said:
            words = " ".join(said[0].split())[:SHOWN]
            found = replace(found, failed=(*found.failed, (case.get("name", ""), words)))
        elif case.find("skipped") is not None:
            found = replace(found, left_out=found.left_out + 1)
        else:
            found = replace(found, passed=found.passed + 1)
    return found


def format_table(outcomes: Sequence[Outcome]) -> str:
    """The table, as Markdown."""
    lines = ["| server | journeys that passed | left out | what differs |", "|---|---|---|---|"]
    for one in outcomes:
        differs = "; ".join(f"`{name}`: {said}" for name, said in one.failed) or "nothing"
        count = f"{one.passed} of {one.passed + len(one.failed)}"
        cells = (one.server, count, str(one.left_out), differs.replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def try_out(kind: str, noted: Path) -> Outcome:
    """Walk the journeys on one server; what it answers is noted in the folder."""
    report = noted / f"{kind}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--timeout", "0"]
    command += [f"{TESTS}::{CLASSES[kind]}", f"--junit-xml={report}"]
    print(f"{VARIABLES[kind]}={PROGRAMS[kind]}", file=sys.stderr, flush=True)
    variables = {"SM_TEST_RECORD": str(noted)}
    subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | variables, check=False, stdout=sys.stderr
    )
    found = [one.name for one in noted.glob(f"{kind}-*")]
    return sum_up(report.read_text(), found[0] if found else kind)


def keep(noted: Path) -> Iterator[Path]:
    """Put one exchange of each kind into the recording of its server; the files."""
    for folder in sorted(one for one in noted.iterdir() if one.is_dir()):
        exchanges = [one for file in sorted(folder.iterdir()) for one in recorder.read(file)]
        file = recorder.FOLDER / f"{folder.name}.jsonl"
        recorder.write(file, choose(exchanges))
        yield file


def main(argv: Sequence[str]) -> int:
    """Try them; returns the exit code: 1 if a journey has failed, 2 for unusable arguments."""
    parser = argparse.ArgumentParser(prog="bin/soak forges", description="See bin/soak --help.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CLASSES))
    parser.add_argument("--record", action="store_true", help="replace the kept recordings")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(CLASSES):
        parser.error(f"no server is called '{unknown.pop()}': {', '.join(CLASSES)}")
    wanted = [one for one in given.names or CLASSES if PROGRAMS[one]]
    if not wanted:
        names = ", ".join(VARIABLES[one] for one in given.names or CLASSES)
        print(f"no server is named: set one of {names} (docs/FORGES.md)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [try_out(one, Path(folder)) for one in wanted]
        has_failed = any(one.failed for one in outcomes)
        for file in keep(Path(folder)) if given.record and not has_failed else ():
            print(f"recorded {file.relative_to(REPOSITORY)}", file=sys.stderr)
    print(format_table(outcomes))
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
