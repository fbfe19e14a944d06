"""bin/soak clients [N]: the tests with real agent CLIs, with each one's newest N versions.

Versions are tried in pairs, the newest with the newest: no test has both. They are installed into
`.cache/versions`, and stay there. Prints a table of Markdown for docs/PROFILES.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from tests.real import npm
from tests.real.client import CLAUDE_PACKAGE, CODEX_PACKAGE, PINNED

REPOSITORY = Path(__file__).resolve().parents[2]
APART = ("test_inspector.py", "test_github_emulator.py")
"""They run no agent CLI."""
SHOWN = 100


@dataclass(frozen=True)
class Outcome:
    """What became of the tests of one version; `failed` are names, with what was said."""

    client: str
    version: str
    passed: int
    failed: tuple[tuple[str, str], ...] = ()


def pair(claude: Sequence[str], codex: Sequence[str], count: int) -> list[tuple[str, str]]:
    """The newest versions together, the newest pair first; of a list that ends, its oldest."""
    return [
        (claude[max(-n, -len(claude))], codex[max(-n, -len(codex))]) for n in range(1, count + 1)
    ]


def sum_up(report: str, claude: str, codex: str) -> list[Outcome]:
    """What a run of pytest says, as JUnit's XML, by the client that each test is about."""
    found = {"Claude Code": Outcome("Claude Code", claude, 0), "Codex": Outcome("Codex", codex, 0)}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
        client = "Codex" if "codex" in name else "Claude Code"
        said = [one.get("message", "") for one in case if one.tag in ("failure", "error")]
        so_far = found[client]
        if said:
            words = " ".join(said[0].split())[:SHOWN]
            found[client] = replace(so_far, failed=(*so_far.failed, (name, words)))
        elif case.find("skipped") is None:
            found[client] = replace(so_far, passed=so_far.passed + 1)
    return list(found.values())


def format_table(outcomes: Sequence[Outcome]) -> str:
    """The table, as Markdown."""
    lines = ["| client | version | passed | what differs |", "|---|---|---|---|"]
    for one in outcomes:
        differs = "; ".join(f"`{name}`: {said}" for name, said in one.failed) or "nothing"
        count = f"{one.passed} of {one.passed + len(one.failed)}"
        cells = (one.client, one.version, count, differs.replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def install(claude: str, codex: str) -> Path:
    """The folder with these versions."""
    pinned = (f"{CLAUDE_PACKAGE}@{claude}", f"{CODEX_PACKAGE}@{codex}")
    folder = npm.CACHE / "versions" / f"{claude}+{codex}"
    packages = replace(PINNED, folder=folder, pinned=pinned)
    if not packages.installed():
        raise npm.InstallError(packages.missing)
    return folder


def try_out(claude: str, codex: str) -> Iterator[Outcome]:
    """Run the tests with these versions."""
    folder = install(claude, codex)
    report = folder.with_suffix(".xml")
    report.unlink(missing_ok=True)
    apart = [f"--ignore=tests/real/{name}" for name in APART]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/real", *apart]
    variables = {"SM_TEST_CLIENTS": str(folder), "SM_REQUIRE_CLIENTS": "1"}
    print(f"Claude Code {claude}, Codex {codex}", flush=True)
    subprocess.run(
        [*command, f"--junit-xml={report}"],
        cwd=REPOSITORY,
        env=os.environ | variables,
        check=False,
        stdout=sys.stderr,
    )
    yield from sum_up(report.read_text(), claude, codex)


def main(argv: Sequence[str]) -> int:
    """Try them; returns the exit code: 1 if a test has failed, 2 for unusable arguments."""
    count = argv[0] if argv else "3"
    if len(argv) > 1 or not count.isdecimal() or not int(count):
        print(f"'{' '.join(argv)}' is no number of versions", file=sys.stderr)
        return 2
    try:
        versions = (npm.list_versions(CLAUDE_PACKAGE), npm.list_versions(CODEX_PACKAGE))
        outcomes = [one for two in pair(*versions, int(count)) for one in try_out(*two)]
    except npm.InstallError as error:
        print(error, file=sys.stderr)
        return 1
    print(format_table(sorted(outcomes, key=lambda one: one.client)))
    return int(any(one.failed for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
