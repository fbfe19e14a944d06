from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml
from msgspec import structs

from sm.base import plugin
from sm.config import reference
from sm.config.convert import list_key_paths
from sm.config.load import load, load_machine
from sm.config.schema import MachineSettings
from sm.config.section import Secret
from sm.config.shapes import read_section, with_every_forge
from sm.config.text import list_effective
from sm.plugins.forges.settings import (
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)
from tests.helpers import REPOSITORY

TOP = REPOSITORY
SECTIONS = dict(plugin.load_parts("sections"))
REGENERATE = "run python -m sm.config.reference docs/CONFIG.md config.example.yaml"


def test_the_document_is_up_to_date() -> None:
    assert (TOP / "docs/CONFIG.md").read_text() == reference.render_document(), REGENERATE


def test_the_example_is_up_to_date() -> None:
    assert (TOP / "config.example.yaml").read_text() == reference.render_example(), REGENERATE


def test_both_are_written_by_one_command(tmp_path: Path) -> None:
    targets = [str(tmp_path / "a.md"), str(tmp_path / "b.yaml")]
    subprocess.run([sys.executable, "-Im", "sm.config.reference", *targets], check=True)
    assert (tmp_path / "a.md").read_text() == reference.render_document()
    assert (tmp_path / "b.yaml").read_text() == reference.render_example()


def leaves(data: dict[str, object], at: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for key, value in data.items():
        found |= leaves(value, (*at, key)) if isinstance(value, dict) and value else {(*at, key)}
    return found


def test_the_example_misses_no_key() -> None:
    text = (TOP / "config.example.yaml").read_text()
    found = leaves(yaml.safe_load(text))
    for block in re.findall(r"^# forge:\n(?:#   .*\n)+", text, re.MULTILINE):
        found |= leaves(yaml.safe_load(block.replace("\n# ", "\n").removeprefix("# ")))
    added = {path for name, shape in SECTIONS.items() for path in list_key_paths(shape, (name,))}
    assert found == {*list_key_paths(MachineSettings), *list_key_paths(with_every_forge()), *added}


def test_each_kind_of_forge_has_a_block_of_its_own_in_the_example(tmp_path: Path) -> None:
    text = (TOP / "config.example.yaml").read_text()
    blocks = re.findall(r"^# forge:\n(?:#   .*\n)+", text, re.MULTILINE)
    found = []
    for block in blocks:
        least = tmp_path / "least.yaml"
        least.write_text("name: x\nrepo: x\n" + block.replace("\n# ", "\n").removeprefix("# "))
        found += [project.forge for project in load(least, {}, tmp_path).projects]
    assert found == [
        GithubSettings(repository="harbor/harb"),
        ForgejoSettings(repository="harbor/harb", url="https://codeberg.org"),
        GiteaSettings(repository="harbor/harb", url="https://codeberg.org"),
        GitlabSettings(repository="harbor/harb"),
    ]


def test_the_example_loads_and_holds_the_defaults(tmp_path: Path) -> None:
    required = {"name": "harb", "repo": "~/src/harb"}
    forge = {"kind": "local", "path": "~/src/harb-hub/forge"}
    least = tmp_path / "least.yaml"
    least.write_text(yaml.safe_dump({**required, "forge": forge}))
    example = load(TOP / "config.example.yaml", {}, tmp_path)
    assert list_effective(example) == list_effective(load(least, {}, tmp_path))


def test_every_key_is_in_the_document_with_its_meaning() -> None:
    document = reference.render_document()
    added = [key for name, shape in SECTIONS.items() for key in reference.list_keys(shape, name)]
    for key in (
        *reference.list_keys(MachineSettings),
        *reference.list_keys(with_every_forge()),
        *added,
    ):
        assert f"\n| `{key.path}` | {key.type} | " in document
        assert key.description


def test_what_a_person_names_is_in_the_example_as_a_comment(tmp_path: Path) -> None:
    text = (TOP / "config.example.yaml").read_text()
    [block] = re.findall(r"^# notify:\n(?:#   .*\n)+", text, re.MULTILINE)
    path = tmp_path / "sm.yaml"
    path.write_text(block.replace("\n# ", "\n").removeprefix("# "))
    [shown] = read_section(
        load_machine(path, {}, tmp_path)[0], SECTIONS["notify"]
    ).channels.values()
    assert str(shown.url) == "[redacted]"
    assert structs.replace(shown, url=Secret()) == type(shown)()
