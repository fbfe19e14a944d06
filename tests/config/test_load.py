from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.config.duration import Seconds
from sm.config.load import load, load_machine
from sm.config.schema import Config, MachineSettings, ProjectSettings
from sm.store.paths import DEFAULT_ROOT
from tests.helpers import sm_yaml

Write = Callable[..., Path]

ONE = "name: harb\nrepo: clone\nforge: {kind: local, path: hub/forge}\n"
ONE_TOML = 'name = "harb"\nrepo = "clone"\nforge = {kind = "local", path = "hub/forge"}\n'


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "cwd"
    folder.mkdir()
    return folder


@pytest.fixture
def write(cwd: Path) -> Write:
    def write(text: str | bytes, name: str = "sm.yaml", folder: Path = cwd) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def read(cwd: Path, explicit: Path | None = None, **env: str) -> Config:
    return load(explicit, {"HOME": os.environ["HOME"]} | env, cwd)


def error(cwd: Path, explicit: Path | None = None, **env: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(cwd, explicit, **env)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


# -- where it is found ---------------------------------------------------------------------------


def test_a_file_in_the_working_directory_is_found(cwd: Path, write: Write) -> None:
    path = write(ONE)
    config = read(cwd)
    assert config.source == path
    assert [project.name for project in config.projects] == ["harb"]


@pytest.mark.parametrize(("name", "text"), [("sm.yml", ONE), ("sm.toml", ONE_TOML)])
def test_yaml_and_toml_are_the_same(cwd: Path, write: Write, name: str, text: str) -> None:
    write(ONE)
    expected = read(cwd).projects
    (cwd / "sm.yaml").unlink()
    write(text, name)
    assert read(cwd).projects == expected


def test_an_explicit_file_goes_before_the_environment_before_the_directory(
    cwd: Path, write: Write
) -> None:
    write(ONE)
    by_env = write(ONE.replace("harb", "env"), "env.yaml")
    explicit = write(ONE.replace("harb", "explicit"), "explicit.yaml")
    assert read(cwd, SM_CONFIG=str(by_env)).projects[0].name == "env"
    assert read(cwd, explicit, SM_CONFIG=str(by_env)).projects[0].name == "explicit"
    assert read(cwd, Path("explicit.yaml")).source == explicit


def test_the_users_folder_is_the_last_place_and_all_its_files_count(
    cwd: Path, write: Write, sealed: Path
) -> None:
    folder = sealed / ".config" / "sm"
    write(ONE.replace("harb", "b"), "b.yaml", folder)
    write(ONE_TOML.replace("harb", "a"), "a.toml", folder)
    write("no: configuration", ".a.yaml.swp", folder)
    write("no: configuration", "b.yaml.bak", folder)
    config = read(cwd)
    assert [project.name for project in config.projects] == ["a", "b"]
    assert config.source == folder
    assert read(cwd, config.source) == config
    write(ONE)
    assert [project.name for project in read(cwd).projects] == ["harb"]


def test_no_configuration_names_the_places_and_init(cwd: Path, sealed: Path) -> None:
    message = error(cwd)
    assert "sm.yaml" in message
    assert str(sealed / ".config/sm") in message
    assert "'sm init'" in message


def test_a_missing_file_is_named_with_who_named_it(cwd: Path) -> None:
    expected = "cannot read 'x.yaml', named by {}: there is no such file"
    assert error(cwd, Path("x.yaml")) == expected.format("--config")
    assert error(cwd, SM_CONFIG="x.yaml") == expected.format("SM_CONFIG")


def test_two_files_in_the_working_directory_are_refused(cwd: Path, write: Write) -> None:
    write(ONE)
    write(ONE_TOML, "sm.toml")
    assert error(cwd) == "both 'sm.yaml' and 'sm.toml' are here: remove one"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_strangers_file_is_not_taken_for_lying_in_the_way(cwd: Path, write: Write) -> None:
    path = write(ONE)
    os.chown(path, 12345, -1)
    assert error(cwd) == "'sm.yaml' is not owned by you: name it with --config to use it"
    assert read(cwd, path).projects[0].name == "harb"


# -- what is in it -------------------------------------------------------------------------------


def test_relative_paths_start_at_the_file_and_tilde_is_home(
    cwd: Path, write: Write, sealed: Path
) -> None:
    write(ONE + "worktree_root: ~/trees\nescalation: {vault: ../vault}\n", "a.yaml", cwd / "in")
    project = read(cwd, Path("in/a.yaml")).projects[0]
    assert project.repo == cwd / "in" / "clone"
    assert Path(project.forge.place) == cwd / "in" / "hub" / "forge"
    assert project.worktree_root == sealed / "trees"
    assert project.escalation.vault == cwd / "vault"


def test_defaults_beside_projects_are_merged_under_each(cwd: Path, write: Write) -> None:
    write(
        """
        max_sessions: 5
        ci: {command: make test, max_fixes: 7}
        forge: {kind: local}
        projects:
          - {name: a, repo: a, forge: {path: fa}}
          - {name: b, repo: b, forge: {path: fb}, max_sessions: 1, ci: {command: ""}}
        """
    )
    a, b = read(cwd).projects
    assert (a.max_sessions, a.ci.command, a.ci.max_fixes) == (5, "make test", 7)
    assert (b.max_sessions, b.ci.command, b.ci.max_fixes) == (1, None, 7)
    assert Path(b.forge.place) == cwd / "fb"


def test_durations_are_read_as_people_write_them(cwd: Path, write: Write) -> None:
    write(ONE + "poll_interval: 2.5\nci: {timeout: 1h30m, poll: '45'}\n")
    project = read(cwd).projects[0]
    assert project.poll_interval_s == 2.5
    assert (project.ci.timeout_s, project.ci.poll_s) == (Seconds(5400), Seconds(45))
    assert project.review.timeout_s == Seconds(3 * 3600)


def test_a_section_with_nothing_in_it_keeps_its_defaults(cwd: Path, write: Write) -> None:
    write(ONE + "ci:\n  # command: make\nreview:\n")
    assert read(cwd).projects[0].ci.max_fixes == 3


@pytest.mark.parametrize("command", ["''", "'  '", "null"])
def test_an_empty_ci_command_means_no_ci(cwd: Path, write: Write, command: str) -> None:
    write(ONE + f"ci: {{command: {command}}}\n")
    assert read(cwd).projects[0].ci.command is None


def test_machine_keys_yield_to_the_environment(cwd: Path, write: Write) -> None:
    write(ONE)
    assert read(cwd).state_root == DEFAULT_ROOT
    assert read(cwd).tmux_socket is None
    write(ONE + "state_root: state\ntmux_socket: mine\n")
    config = read(cwd)
    assert (config.state_root, config.tmux_socket) == (cwd / "state", "mine")
    config = read(cwd, SM_STATE_ROOT="/elsewhere", SM_TMUX_SOCKET="other")
    assert (config.state_root, config.tmux_socket) == (Path("/elsewhere"), "other")


def test_each_file_of_the_folder_may_add_profiles_but_not_differ(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    write(ONE + "profiles: {one: {glyph: '>'}, both: {glyph: '$'}}\n", "a.yaml", folder)
    write("profiles: {two: {glyph: '%'}, both: {glyph: '$'}}\n", "b.yaml", folder)
    assert {name: fields["glyph"] for name, fields in read(cwd, folder).profiles.items()} == {
        "one": ">",
        "both": "$",
        "two": "%",
    }
    write("profiles: {one: {glyph: '%'}}\n", "c.yaml", folder)
    assert "'profiles.one' differs in 'set/a.yaml' (line 4) and in 'set/c.yaml'" in error(
        cwd, folder
    )


def test_machine_keys_may_be_in_any_file_of_the_folder_but_not_differ(
    cwd: Path, write: Write
) -> None:
    folder = cwd / "set"
    write(ONE, "a.yaml", folder)
    write("state_root: /one\n", "machine.yaml", folder)
    assert read(cwd, folder).state_root == Path("/one")
    write(ONE.replace("harb", "b") + "state_root: /two\n", "b.yaml", folder)
    assert error(cwd, folder) == (
        "'state_root' differs in 'set/b.yaml' (line 4) and in 'set/machine.yaml' (line 1): "
        "it holds for the whole machine, so remove one"
    )


def test_a_byte_order_mark_is_no_matter(cwd: Path, write: Write) -> None:
    write(b"\xef\xbb\xbf" + ONE.encode())
    assert read(cwd).projects[0].name == "harb"


def test_anchors_and_merge_keys_work(cwd: Path, write: Write) -> None:
    write(
        "projects:\n"
        "  - &a {name: a, repo: a, forge: {kind: local, path: f}}\n"
        "  - {<<: *a, name: b}\n"
    )
    assert [project.name for project in read(cwd).projects] == ["a", "b"]


# -- what the machine says, and a project may say otherwise --------------------------------------


def thresholds(config: Config) -> dict[str, tuple[int, int]]:
    """When is warned, and when urgently: on the machine (''), and in each project."""
    every: dict[str, MachineSettings | ProjectSettings] = {
        project.name: project for project in config.projects
    }
    every[""] = config
    return {
        name: (one.context_monitor.warning_percentage, one.context_monitor.critical_percentage)
        for name, one in every.items()
    }


def test_thresholds_in_a_projects_own_file_are_that_projects_alone(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    own = "context_monitor: {warning_percentage: 20, critical_percentage: 30}\n"
    cycle = "handoff_cycle: {enabled: false}\n"
    write(ONE.replace("harb", "shop") + own + cycle, "shop.yaml", folder)
    write(ONE.replace("harb", "zoo"), "zoo.yaml", folder)
    config = read(cwd, folder)
    assert thresholds(config) == {"": (50, 65), "shop": (20, 30), "zoo": (50, 65)}
    assert [project.handoff_cycle.enabled for project in config.projects] == [False, True]
    assert config.handoff_cycle.enabled
    write(ONE.replace("harb", "zoo") + own.replace("20", "25"), "zoo.yaml", folder)
    assert thresholds(read(cwd, folder)) == {"": (50, 65), "shop": (20, 30), "zoo": (25, 30)}


def test_the_only_project_of_a_file_sets_nothing_for_sessions_without_one(
    cwd: Path, write: Write
) -> None:
    write(ONE + "context_monitor: {warning_percentage: 20}\n")
    assert thresholds(read(cwd)) == {"": (50, 65), "harb": (20, 65)}
    machine, _ = load_machine(None, {"HOME": os.environ["HOME"]}, cwd)
    assert machine.context_monitor.warning_percentage == 50


def test_a_project_goes_key_by_key_before_the_machine(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    whole = "context_monitor: {warning_percentage: 40, critical_percentage: 70}\n"
    write(whole, "machine.yaml", folder)
    write(ONE + "context_monitor: {warning_percentage: 60}\n", "harb.yaml", folder)
    write(ONE.replace("harb", "zoo") + "context_monitor:\n", "zoo.toml.yaml", folder)
    listed = "projects:\n  - {name: A, repo: x, forge: {kind: local, path: f}, OWN}\n"
    write(
        listed.replace("A", "a").replace("OWN", "context_monitor: {critical_percentage: 80}"),
        "a.yaml",
        folder,
    )
    assert thresholds(read(cwd, folder)) == {
        "": (40, 70),
        "a": (40, 80),
        "harb": (60, 70),
        "zoo": (40, 70),
    }


def test_what_stands_beside_projects_holds_for_the_machine(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    several = SEVERAL.replace(", OWN", ", context_monitor: {warning_percentage: 45}")
    write("context_monitor: {critical_percentage: 75}\n" + several, "all.yaml", folder)
    write(ONE, "harb.yaml", folder)
    assert thresholds(read(cwd, folder)) == {
        "": (50, 75),
        "one": (50, 75),
        "two": (45, 75),
        "harb": (50, 75),
    }


def test_the_machines_thresholds_may_not_differ_between_files(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    write("handoff_cycle: {keep: 3}\n", "a.yaml", folder)
    write("handoff_cycle: {keep: 3}\n" + SEVERAL.replace(", OWN", ""), "b.yaml", folder)
    write(ONE + "handoff_cycle: {keep: 4}\n", "harb.yaml", folder)
    kept = {project.name: project.handoff_cycle.keep for project in read(cwd, folder).projects}
    assert kept == {"one": 3, "two": 3, "harb": 4}
    write("handoff_cycle: {keep: 5}\n", "c.yaml", folder)
    assert error(cwd, folder) == (
        "'handoff_cycle' differs in 'set/a.yaml' (line 1) and in 'set/c.yaml' (line 1): "
        "it holds for the whole machine, so remove one"
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (
            "context_monitor: {warning_percentage: 80, critical_percentage: 60}",
            "'context_monitor.critical_percentage' in 'sm.yaml' (line 1): it must be more than",
        ),
        ("handoff_cycle: {folder: ../x}", "'handoff_cycle.folder' in 'sm.yaml' (line 1): it may"),
        ("handoff_cycle: {timeout: 0s}", "'handoff_cycle.timeout' in 'sm.yaml' (line 1): it must"),
        ("handoff_cycle: {sections: ['']}", "'handoff_cycle.sections' in 'sm.yaml' (line 1): a s"),
    ],
)
def test_what_is_wrong_for_the_machine_is_refused_though_there_is_no_project(
    cwd: Path, write: Write, own: str, expected: str
) -> None:
    write(own + "\n")
    with pytest.raises(UsageError) as caught:
        load_machine(None, {"HOME": os.environ["HOME"]}, cwd)
    assert expected in caught.value.message


# -- bad input: one clear line each --------------------------------------------------------------

BAD: list[tuple[str, str]] = [
    # misspelt and misplaced keys
    ("ci: {timout: 3}", "unknown key 'ci.timout' in 'sm.yaml' (line 4): did you mean 'timeout'?"),
    ("max_session: 3", "unknown key 'max_session' in 'sm.yaml' (line 4): did you mean 'max_sessi"),
    ("max_fixes: 3", "unknown key 'max_fixes' in 'sm.yaml' (line 4): did you mean 'ci.max_fixes'?"),
    ("tmux_sock: x", "unknown key 'tmux_sock' in 'sm.yaml' (line 4): did you mean 'tmux_socket'?"),
    ("project: [x]", "unknown key 'project' in 'sm.yaml' (line 4): did you mean 'projects'?"),
    ("merge: {colour: red}", "unknown key 'merge.colour' in 'sm.yaml' (line 4): known there: by"),
    ("1: 2", "unknown key '1' in 'sm.yaml' (line 4): known there: name, repo"),
    # wrong types
    ("max_sessions: many", "'max_sessions' in 'sm.yaml' (line 4): expected a whole number, got 'm"),
    ("max_sessions: -1", "(line 4): expected a whole number >= 0, got -1"),
    ("max_open: 1", "'max_open' in 'sm.yaml' (line 4): it must be at least 'max_sessions', which"),
    ("max_open: -1", "(line 4): expected a whole number >= 0, got -1"),
    ("max_open: many", "(line 4): expected a whole number or nothing, got 'many'"),
    ("max_sessions: 1.5", "(line 4): expected a whole number, got 1.5"),
    ("max_sessions: yes", "(line 4): expected a whole number, got true"),
    ("review: {required: 1}", "'review.required' in 'sm.yaml' (line 4): expected true or false"),
    ("remote: 5", "'remote' in 'sm.yaml' (line 4): expected text, got 5: put it in quotes"),
    ("remote: no", "(line 4): expected text, got false: put it in quotes"),
    ("remote:", "(line 4): expected text, got nothing"),
    ("ci: fast", "wrong value for 'ci' in 'sm.yaml' (line 4): expected a section of keys, got 'f"),
    ("trusted: bob", "(line 4): expected a list, got 'bob'"),
    ("trusted: [bob, 7]", "wrong value for 'trusted[2]' in 'sm.yaml' (line 4): expected text, go"),
    ("agent: {env: {A: 1}}", "wrong value for 'agent.env' in 'sm.yaml' (line 4): expected text"),
    ("ci: {timeout: soon}", "'ci.timeout' in 'sm.yaml' (line 4): expected a duration such as 30s"),
    ("ci: {timeout: -3}", "(line 4): expected a duration of zero or more, got -3"),
    ("ci: {timeout: .nan}", "(line 4): expected a duration of zero or more"),
    ("ci: {timeout: true}", "(line 4): expected a duration such as 30s or 3h, got true"),
    ("ci: {timeout: [3]}", "(line 4): expected a duration such as 30s or 3h, got a list"),
    ("ci: {poll: 0}", "wrong value for 'ci.poll' in 'sm.yaml' (line 4): it must be more than"),
    ("poll_interval: 0", "wrong value for 'poll_interval' in 'sm.yaml' (line 4): it must be mor"),
    ("merge: {by: me}", "wrong value for 'merge.by' in 'sm.yaml' (line 4): expected agent or sm"),
    ("worktree_root: 5", "wrong value for 'worktree_root' in 'sm.yaml' (line 4): expected a path"),
    ("worktree_root: ''", "wrong value for 'worktree_root' in 'sm.yaml' (line 4): expected a pat"),
    ("projects: 5", "wrong value for 'projects' in 'sm.yaml' (line 4): expected a list of project"),
    ("projects: [5]", "wrong value for 'projects' in 'sm.yaml' (line 4): expected a list of proj"),
    ("projects: []", "no project in 'sm.yaml': run 'sm init'"),
    # values that something else would refuse
    ("branch_prefix: a..b", "'branch_prefix' in 'sm.yaml' (line 4): git refuses 'a..b'"),
    ("branch_prefix: ''", "(line 4): git refuses ''"),
    ("branch_prefix: main", "git cannot have 'main/1' beside the primary branch 'main'"),
    ("primary_branch: 'a b'", "'primary_branch' in 'sm.yaml' (line 4): git refuses 'a b'"),
    ("remote: -x", "'remote' in 'sm.yaml' (line 4): git refuses '-x'"),
    ("labels: {blocked: backlog}", "'labels' in 'sm.yaml' (line 4): two of the labels are the sa"),
    ("labels: {blocked: ' '}", "'labels' in 'sm.yaml' (line 4): a label needs a name"),
    ("agent: {command: 'a \"b'}", "'agent.command' in 'sm.yaml' (line 4): its quotes do not match"),
    ("agent: {command: ' '}", "'agent.command' in 'sm.yaml' (line 4): it names no program"),
    ("agent: {prompt_glyph: x}", "unknown key 'agent.prompt_glyph' in 'sm.yaml' (line 4): known"),
    ("profiles: [mine]", "'profiles' in 'sm.yaml' (line 4): expected a section of keys, got a"),
    ("profiles: {mine: x}", "'profiles' in 'sm.yaml' (line 4): expected a section of keys"),
    ("agent: {env: {A-B: x}}", "'agent.env' in 'sm.yaml' (line 4): 'A-B' is no name for a varia"),
    ('agent: {env: {A: "x\\0"}}', "the value of 'A' holds a NUL character"),
    ("agent: {pass_env: [A=B]}", "'agent.pass_env' in 'sm.yaml' (line 4): 'A=B' is no name"),
    ("tmux_socket: a/b", "tmux socket 'a/b' cannot be a file name"),
    ("state_root: 5", "wrong value for 'state_root' in 'sm.yaml' (line 4): expected a path, got 5"),
    # what does not parse
    ("max_sessions: 1\nmax_sessions: 2", "key 'max_sessions' is written twice in 'sm.yaml' (line"),
    ("ci: {poll: 1, poll: 2}", "key 'poll' is written twice in 'sm.yaml' (line 4)"),
    ("ci: [", "cannot parse 'sm.yaml', line 5, column 1: "),
    ("a: b: c", "cannot parse 'sm.yaml', line 4, column 5: mapping values are not allowed"),
    ("ci: !!python/object/apply:os.system [x]", "cannot parse 'sm.yaml', line 4, column 5: "),
    (
        "? [a]\n: b",
        "cannot parse 'sm.yaml', line 4, column 3: while constructing a mapping, found unhash",
    ),
    ("name: \x07", "cannot parse 'sm.yaml'"),
    ("remote: 2026-02-31", "cannot parse 'sm.yaml': day is out of range for month"),
    ("ci: " + "[" * 5000, "cannot parse 'sm.yaml'"),
    ("--- a\n--- b", "cannot parse 'sm.yaml', line 4, column 1: expected a single document"),
]


@pytest.mark.parametrize(("added", "expected"), BAD, ids=[added[:30] for added, _ in BAD])
def test_bad_yaml_is_explained(cwd: Path, write: Write, added: str, expected: str) -> None:
    write(ONE + added + "\n")
    assert expected in error(cwd)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'sm.yaml' is empty: run 'sm init'"),
        ("# only a comment\n", "'sm.yaml' is empty"),
        ("{}", "'sm.yaml' is empty"),
        ("- a\n- b\n", "'sm.yaml' holds no keys"),
        ("just words", "'sm.yaml' holds no keys"),
        ("state_root: /x\n", "no project in 'sm.yaml': run 'sm init' to add one"),
        ("repo: x\n", "missing key 'name' in 'sm.yaml': part of session and file names"),
        ("name: x\nrepo: x\n", "missing key 'forge' in 'sm.yaml': where issues, pull requests"),
        ("name: x\nrepo: x\nforge: {kind: local}\n", "missing key 'forge.path' in 'sm.yaml': the"),
        (ONE.replace("harb", "a/b"), "(line 1): project 'a/b' cannot be a file name"),
        (ONE.replace("harb", "../x"), "(line 1): project '../x' cannot be a file name"),
        (ONE.replace("harb", "-x"), "(line 1): project '-x' cannot be a file name"),
        (ONE.replace("harb", "x" * 65), "cannot be a file name"),
        (
            ONE.replace("local", "gitlob"),
            "'forge.kind' in 'sm.yaml' (line 3): expected local or github or forgejo or gitea or "
            "gitlab, got",
        ),
        ("a: &a [*a]\n", "cannot parse 'sm.yaml': '*a' stands for something that it is a"),
        ("name: caf\udce9\n".encode("utf-8", "surrogateescape"), "line 1: it is not UTF-8 text"),
        (b"name: x\n\n\xff\xfe", "cannot read 'sm.yaml', line 3: it is not UTF-8 text: save it as"),
        (b"\0" * 64, "cannot parse 'sm.yaml'"),
        ("#" * (1 << 21), "cannot read 'sm.yaml': it is too large for a configuration"),
    ],
)
def test_a_file_that_is_no_configuration_is_explained(
    cwd: Path, write: Write, text: str | bytes, expected: str
) -> None:
    write(text)
    assert expected in error(cwd)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = ", "cannot parse 'sm.toml': invalid value (at end of document)"),
        ("a = 1\na = 2\n", "cannot parse 'sm.toml': cannot overwrite a value (at line 2"),
        (ONE_TOML + "[ci]\ntimout = 3\n", "unknown key 'ci.timout' in 'sm.toml': did you mean"),
        (ONE_TOML + "max_sessions = 'x'\n", "'max_sessions' in 'sm.toml': expected a whole num"),
        ("a = " + "[" * 5000, "cannot parse 'sm.toml': it is nested too deeply"),
    ],
)
def test_bad_toml_is_explained(cwd: Path, write: Write, text: str, expected: str) -> None:
    write(text, "sm.toml")
    assert expected in error(cwd)


SEVERAL = """
ci: {max_fixes: 1}
projects:
  - {name: one, repo: x, forge: {kind: local, path: f}}
  - {name: two, repo: x, forge: {kind: local, path: f}, OWN}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SEVERAL.replace("OWN", "ci: {poll: x}"), "value for 'ci.poll' of 'two' in 'sm.yaml' (li"),
        (SEVERAL.replace("max_fixes: 1", "poll: x"), "value for 'ci.poll' in 'sm.yaml' (line 2)"),
        (SEVERAL.replace("name: two, ", ""), "missing key 'name' of 'project 2' in 'sm.yaml'"),
        (SEVERAL.replace("OWN", "state_root: x"), "(line 5): it belongs at the top of the file"),
        (SEVERAL.replace("two", "one"), "'one' is there twice, in 'sm.yaml' (line 4) and in 'sm."),
        (
            SEVERAL.replace("one", "a.b").replace("two", "a_b"),
            "projects 'a.b' and 'a_b' in 'sm.yaml' (line 5) would share their tmux sessions",
        ),
    ],
)
def test_the_project_at_fault_is_named(cwd: Path, write: Write, text: str, expected: str) -> None:
    write(text.replace(", OWN", ""))
    assert expected in error(cwd)


def test_a_project_in_two_files_is_refused(cwd: Path, write: Write) -> None:
    folder = cwd / "set"
    write(ONE, "a.yaml", folder)
    write(ONE, "b.yaml", folder)
    assert error(cwd, folder) == (
        "project 'harb' is there twice, in 'set/a.yaml' (line 1) and in 'set/b.yaml' (line 1): "
        "rename or remove one"
    )


def test_a_directory_in_place_of_the_file_is_refused(cwd: Path) -> None:
    (cwd / "sm.yaml").mkdir()
    assert error(cwd) == "cannot read 'sm.yaml': it is a directory"
    (cwd / "empty").mkdir()
    assert error(cwd, Path("empty")) == "no *.yaml or *.toml in the directory 'empty'"
    (cwd / "empty" / "a.yaml").mkdir()
    assert error(cwd, Path("empty")) == "cannot read 'empty/a.yaml': is a directory"


def test_a_fifo_is_refused_and_not_waited_for(cwd: Path) -> None:
    os.mkfifo(cwd / "sm.yaml")
    assert error(cwd) == "cannot read 'sm.yaml': it is not a regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(cwd: Path, write: Write) -> None:
    write(ONE).chmod(0)
    assert error(cwd) == "cannot read 'sm.yaml': permission denied"


def test_a_dangling_link_is_refused(cwd: Path) -> None:
    (cwd / "a.yaml").symlink_to("nowhere")
    assert "there is no such file" in error(cwd, Path("a.yaml"))


def test_an_alias_bomb_does_no_harm(cwd: Path, write: Write) -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    write("l0: &l0 [x]\n" + "\n".join(levels) + "\n")
    assert "cannot parse 'sm.yaml': it has too many values" in error(cwd)


@pytest.mark.parametrize("key", ["repo", "worktree_root", "forge.path"])
def test_path_with_a_line_break_is_refused(cwd: Path, write: Write, key: str) -> None:
    said = {"repo": "clone", "worktree_root": "trees", "forge.path": "forge"} | {key: "a\\nb"}
    write(
        f'name: harb\nrepo: "{said["repo"]}"\nworktree_root: "{said["worktree_root"]}"\n'
        f'forge: {{kind: local, path: "{said["forge.path"]}"}}\n'
    )
    told = error(cwd)
    assert f"'{key}'" in told
    assert "has a line break" in told


def test_configuration_in_a_folder_whose_name_is_not_utf_8_is_refused(
    tmp_path: Path, write: Write
) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff")
    write(ONE, folder=folder)
    assert "is not UTF-8" in error(folder)


@pytest.mark.parametrize("own", ["", "agent: {timeout: 45m}"])
def test_the_protocols_timeout_holds_where_no_file_has_one(tmp_path: Path, own: str) -> None:
    path = sm_yaml(tmp_path)
    path.write_text(f"{path.read_text()}{own}\n")
    (project,) = load(path, {"CLAUDE_TIMEOUT": "5400"}, tmp_path).projects
    assert project.agent.timeout_s == Seconds(2700 if own else 5400)
    (project,) = load(path, {}, tmp_path).projects
    assert project.agent.timeout_s == Seconds(2700 if own else 7200)


def test_a_timeout_of_the_protocol_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wrong value for CLAUDE_TIMEOUT"):
        load(sm_yaml(tmp_path), {"CLAUDE_TIMEOUT": "soon"}, tmp_path)
