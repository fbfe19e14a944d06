from __future__ import annotations

import io
import os
import re
import shutil
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.agent import profiles
from sm.adapters.forge.local.setup import read_settings
from sm.config.allowed import allow
from sm.config.load import load
from sm.config.read import read_document
from sm.config.schema import ProjectSettings
from sm.config.text import Values, format_text
from sm.sessions.project import Project
from sm.setup import discover
from sm.setup.problems import list_project_problems
from sm.setup.variables import list_hidden
from sm.shell_root import find_shell_root
from sm.store import lock
from tests.helpers import Repository, git, make_repository
from tests.hub import local_forge

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture(autouse=True)
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `claude` on PATH, as the only agent there."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without a remote; it is where we are."""
    path = tmp_path / "src" / "reef"
    path.mkdir(parents=True)
    git(path, "init", "-q")
    (path / "Makefile").write_text("test:\n\ttrue\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    git(path, "tag", "v1")
    git(path, "branch", "fix/1")
    monkeypatch.chdir(path)
    return path


def project(name: str = "reef") -> ProjectSettings:
    config = load(None, os.environ, Path("/"))
    found = config.project(name)
    assert found is not None
    return found


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["init", "--yes", *args]) != 0
    return capsys.readouterr().err


# -- the hub -------------------------------------------------------------------------------------


def test_a_repository_without_a_remote_gets_a_hub_and_a_forge(
    clone: Path, capsys: pytest.CaptureFixture[str], sealed: Path
) -> None:
    assert run(["init", "--yes"]) == 0
    hub = clone.parent / "reef-hub"
    made = project()
    assert (made.repo, made.remote, made.primary_branch) == (clone, "origin", "main")
    assert Path(made.forge.place) == hub / "forge"
    assert made.agent.command == "claude --dangerously-skip-permissions"
    assert made.ci.command == "make test"
    assert list(list_project_problems(made, {})) == []
    assert read_settings(Path(made.forge.place)) == hub / "repo.git"
    assert git(clone, "rev-parse", "origin/main") == git(clone, "rev-parse", "main")
    assert git(hub / "repo.git", "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/tags/v1",
    ]
    out = capsys.readouterr().out
    assert f"wrote '{sealed}/.config/sm/reef.yaml'" in out
    last = [line.partition("#")[0].rstrip() for line in out.splitlines()[-4:]]
    # In a clone whose path wants quoting, the command is quoted.
    assert re.search(r"""bin/sm'? issue add "…"$""", last[0])
    assert last[1].endswith("bin/dev-poll --loop")


def test_the_working_tree_is_not_touched(clone: Path) -> None:
    (clone / "Makefile").write_text("changed\n")
    (clone / "new").write_text("new\n")
    before = git(clone, "status", "--porcelain=v2"), sorted(clone.iterdir())
    assert run(["init", "--yes"]) == 0
    after = git(clone, "status", "--porcelain=v2"), sorted(clone.iterdir())
    assert after == before


def test_a_person_is_told_what_of_the_clone_agents_do_not_see(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes"]) == 0
    assert "agents do not see" not in capsys.readouterr().out
    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    (clone / "notes").touch()
    assert run(["init", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"agents do not see 1 changed file in '{clone}', not committed yet" in said
    assert "agents do not see 1 commit of 'main', not pushed to 'origin' yet" in said


def test_what_is_next_names_a_program_that_is_on_path_by_its_name(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes"]) == 0
    assert "/bin/sm issue add" in capsys.readouterr().out
    for name in ("sm", "dev-poll"):
        (tmp_path / "bin" / name).symlink_to(find_shell_root() / "bin" / name)
    assert run(["init", "--yes"]) == 0
    assert capsys.readouterr().out.endswith(
        "next:\n"
        '  sm issue add "…"   # what is to be done\n'
        "  dev-poll --loop    # takes it up, says what needs you\n"
        "  sm status --watch  # in another terminal\n"
        "  git pull           # when it is merged\n"
    )


def test_what_is_next_names_the_remote_that_the_branch_does_not_follow(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(clone, "remote", "add", "origin", "https://example.com/reef.git")
    git(clone, "update-ref", "refs/remotes/origin/main", "main")
    git(clone, "branch", "-q", "--set-upstream-to", "origin/main")
    assert run(["init", "--yes"]) == 0
    assert "\n  git pull hub main  " in capsys.readouterr().out


def test_a_second_run_changes_nothing(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--yes"]) == 0
    config = (clone / ".git/config").read_text()
    (clone / "Makefile").write_text("test:\n\ttrue\n")
    git(clone, "commit", "--allow-empty", "-qm", "more")
    capsys.readouterr()
    assert run(["init", "--yes"]) == 0
    assert (clone / ".git/config").read_text() == config
    out = capsys.readouterr().out
    assert "made" not in out
    assert "wrote" not in out


def test_a_local_bare_remote_is_the_hub(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    assert run(["init", "--yes", "--repo", str(repository.clone), "--ci", "none"]) == 0
    made = project("clone")
    assert (made.remote, made.ci.command) == ("origin", None)
    assert read_settings(Path(made.forge.place)) == repository.bare
    assert not (tmp_path / "clone-hub" / "repo.git").exists()
    assert list(list_project_problems(made, {})) == []


def test_a_remote_elsewhere_is_left_alone_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = make_repository(tmp_path)
    git(repository.clone, "fetch", "-q", "origin")
    git(repository.clone, "remote", "set-head", "origin", "main")
    git(repository.clone, "checkout", "-q", "-b", "topic")
    url = "https://ada:secret@127.0.0.1:1/reef.git"
    git(repository.clone, "remote", "set-url", "origin", url)
    assert run(["init", "--yes", "--repo", str(repository.clone)]) == 0
    made = project("clone")
    assert (made.remote, made.primary_branch) == ("hub", "main")
    assert git(repository.clone, "remote", "get-url", "origin") == url
    assert git(repository.clone, "rev-parse", "hub/main")
    assert list(list_project_problems(made, {})) == []
    out = capsys.readouterr().out
    assert "'origin' is at https://" in out
    assert "secret" not in out
    said = "sync' exchanges finished work with 'origin'"
    assert said in out
    assert run(["init", "--yes", "--repo", str(repository.clone)]) == 0  # finds the hub again
    assert said in capsys.readouterr().out


def test_the_newer_of_both_primary_branches_starts_the_hub(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    old = git(repository.clone, "rev-parse", "HEAD")
    new = repository.commit("more", "more\n")
    git(repository.clone, "reset", "-q", "--hard", old)
    git(repository.clone, "remote", "set-url", "origin", "https://127.0.0.1:1/x")
    assert run(["init", "--yes", "--repo", str(repository.clone), "--primary-branch", "main"]) == 0
    assert git(tmp_path / "clone-hub/repo.git", "rev-parse", "main") == new


def test_an_interrupted_run_is_taken_up(clone: Path) -> None:
    assert run(["init", "--yes"]) == 0
    git(clone, "remote", "remove", "origin")
    git(clone, "commit", "--allow-empty", "-qm", "since then")
    shutil.rmtree(clone.parent / "reef-hub" / "forge")
    assert run(["init", "--yes"]) == 0
    assert list(list_project_problems(project(), {})) == []


def test_another_projects_hub_is_not_taken(
    clone: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = make_repository(tmp_path)
    hub = clone.parent / "reef-hub" / "repo.git"
    shutil.copytree(other.bare, hub)
    assert refused(capsys) == f"sm: '{hub}' holds another project's history: move it away\n"
    assert git(clone, "remote") == ""


@pytest.mark.parametrize("shallow", [False, True])
def test_a_linked_worktree_or_a_subfolder_leads_to_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shallow: bool
) -> None:
    repository = make_repository(tmp_path)
    repository.commit("more", "more\n")
    depth = ["--depth", "1"] if shallow else []
    git(tmp_path, "clone", "-q", *depth, f"file://{repository.bare}", "second")
    second = tmp_path / "second"
    git(second, "remote", "remove", "origin")
    git(second, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree" / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "tree" / "sub")
    assert run(["init", "--yes"]) == 0
    assert project("second").repo == second
    assert list(list_project_problems(project("second"), {})) == []


# -- what it refuses -----------------------------------------------------------------------------


def test_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"sm: '{tmp_path}' is in no git repository: name one with --repo\n"
    assert refused(capsys) == expected


def test_a_bare_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = make_repository(tmp_path).bare
    assert "is a bare repository: name a clone of it" in refused(capsys, "--repo", str(bare))


def test_a_repository_without_a_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(tmp_path, "init", "-q", "empty")
    message = refused(capsys, "--repo", str(tmp_path / "empty"))
    assert message == f"sm: '{tmp_path}/empty' has no commit yet: make a first one (git commit)\n"
    assert not (tmp_path / "empty-hub").exists()


def test_a_remote_without_the_primary_branch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = make_repository(tmp_path).clone
    message = refused(capsys, "--repo", str(clone), "--primary-branch", "trunk")
    assert "remote 'origin' has no branch 'trunk': run git push origin trunk" in message


def test_a_primary_branch_that_is_nowhere(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no branch 'trunk'" in refused(capsys, "--primary-branch", "trunk")
    assert not (clone.parent / "reef-hub").exists()


def test_a_detached_head_tells_no_primary_branch(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(clone, "checkout", "-q", "--detach")
    assert "found no primary branch: give it by --primary-branch" in refused(capsys)


def test_a_taken_remote(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(clone, "remote", "add", "hub", "https://127.0.0.1:1/x")
    assert "remote 'hub' is no bare repository on this machine" in refused(capsys)
    assert run(["init", "--yes", "--remote", "agents", "--primary-branch", "main"]) == 0
    assert project().remote == "agents"


def test_no_agent(
    clone: Path, agent: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_agent(agent, monkeypatch)
    assert "found no agent command: give it by --agent" in refused(capsys)
    assert not (clone.parent / "reef-hub").exists()


@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--name", "a/b"], "project 'a/b' cannot be a file name"),
        (["--primary-branch", "a..b"], "git refuses 'a..b'"),
        (["--agent", "x 'y"], "its quotes do not match"),
        (["--output", "x.txt"], "must end in .yaml or .toml"),
        (["--bad"], "no such option '--bad'"),
    ],
)
def test_bad_values(capsys: pytest.CaptureFixture[str], args: list[str], expected: str) -> None:
    assert expected in refused(capsys, *args)


def test_a_file_of_other_content_is_kept(
    clone: Path, capsys: pytest.CaptureFixture[str], sealed: Path
) -> None:
    path = sealed / ".config/sm/reef.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    assert refused(capsys) == f"sm: '{path}' exists: use --force to replace it, or --output\n"
    assert path.read_text() == "# mine\n"
    assert not (clone.parent / "reef-hub").exists()
    assert run(["init", "--yes", "--force"]) == 0
    assert project().repo == clone


@pytest.mark.parametrize("lost", ["reef-hub/forge", "reef-hub"])
def test_what_config_check_misses_a_second_run_makes_and_keeps_the_file(
    clone: Path, capsys: pytest.CaptureFixture[str], sealed: Path, lost: str
) -> None:
    assert run(["init", "--yes"]) == 0
    path = sealed / ".config/sm/reef.yaml"
    mine = path.read_text() + "max_sessions: 5\n"
    path.write_text(mine)
    shutil.rmtree(clone.parent / lost)
    assert run(["config", "check"]) == 2
    assert "run 'sm init'" in capsys.readouterr().out or lost == "reef-hub"
    assert run(["init", "--yes"]) == 0
    assert f"'{path}' already: that stays as it is" in capsys.readouterr().out
    assert path.read_text() == mine
    assert run(["config", "check"]) == 0
    assert run(["init", "--yes"]) == 0
    assert "nothing was missing" in capsys.readouterr().out


def test_a_second_run_asks_nothing_but_whether_to_go_ahead(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes", "--ci", "none"]) == 0
    shutil.rmtree(clone.parent / "reef-hub/forge")
    answer(monkeypatch, "y")
    assert run(["init"]) == 0
    assert capsys.readouterr().err.count("?") == 1
    assert list(list_project_problems(project(), {})) == []


def test_new_values_for_a_project_that_is_there_need_force(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes"]) == 0
    assert "exists: use --force to replace it" in refused(capsys, "--ci", "true")
    assert project().ci.command == "make test"
    assert run(["init", "--yes", "--force", "--ci", "true"]) == 0
    assert project().ci.command == "true"


@pytest.mark.usefixtures("clone")
def test_an_empty_file_is_filled(sealed: Path) -> None:
    path = sealed / ".config/sm/reef.yaml"
    path.parent.mkdir(parents=True)
    path.touch()
    assert run(["init", "--yes"]) == 0
    assert project().name == "reef"


def test_names_are_apart_in_the_users_folder(
    clone: Path, capsys: pytest.CaptureFixture[str], sealed: Path
) -> None:
    assert run(["init", "--yes", "--name", "a.b"]) == 0
    assert "project 'a.b' is in" in refused(capsys, "--name", "a_b")
    assert run(["init", "--yes", "--name", "c"]) == 0
    assert 'issue add --project c "…"' in capsys.readouterr().out
    assert not (sealed / ".config/sm/a_b.yaml").exists()


def test_a_file_that_is_replaced_gets_no_name_of_another(
    clone: Path, capsys: pytest.CaptureFixture[str], sealed: Path
) -> None:
    assert run(["init", "--yes"]) == 0
    old = sealed / ".config/sm/old.yaml"
    old.write_text("# mine\n")
    assert "project 'reef' is in" in refused(capsys, "--output", str(old), "--force")
    assert old.read_text() == "# mine\n"
    assert run(["init", "--yes", "--output", str(old), "--force", "--name", "other"]) == 0
    assert {project("reef").name, project("other").name} == {"reef", "other"}


# -- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.yaml", "x.toml"])
def test_what_is_written_is_what_was_meant(tmp_path: Path, name: str) -> None:
    nasty = 'a "b" \\ # : ❯ é\x7f \t {x} [y]'
    values: Values = {
        "name": "x",
        "repo": nasty,
        "forge": {"kind": "local", "path": "/f"},
        "ci": {"command": nasty},
    }
    path = tmp_path / name
    path.write_text(format_text(values, path))
    assert read_document(path, name).data == values


def test_the_commented_keys_are_right_where_they_stand(tmp_path: Path) -> None:
    values: Values = {"name": "x", "repo": "r", "forge": {"kind": "local", "path": "/f"}, "ci": {}}
    for name in ("x.yaml", "x.toml"):
        path = tmp_path / name
        text = format_text(values, path).replace("# max_sessions", "max_sessions").replace("2", "7")
        head, _, tail = text.rpartition("\n\n")
        path.write_text(head + "\n\n" + tail.replace("# ", "", 1).replace("\n# ", "\n"))
        (made,) = load(path, {}, tmp_path).projects
        assert made.max_sessions == 7
        assert made.review.required is True


def test_toml_on_request_and_a_file_elsewhere_is_pointed_at(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], sealed: Path
) -> None:
    assert run(["init", "--yes", "--toml"]) == 0
    assert (sealed / ".config/sm/reef.toml").exists()
    assert "SM_CONFIG" not in capsys.readouterr().out
    output = tmp_path / "else where.yaml"
    assert run(["init", "--yes", "--output", str(output)]) == 0
    assert f"  export SM_CONFIG='{output}'\n" in capsys.readouterr().out
    assert load(output, {}, clone).projects == load(None, os.environ, clone).projects


def test_the_only_configuration_may_be_elsewhere(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "only.yaml"
    assert run(["init", "--yes", "--output", str(output)]) == 0
    assert f"  export SM_CONFIG={output}\n" in capsys.readouterr().out


def test_what_to_do_next_is_said_when_no_other_configuration_can_be_found(
    clone: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sealed: Path,
) -> None:
    here = f"  export SM_CONFIG={sealed}/.config/sm/reef.yaml\n"
    monkeypatch.setenv("SM_CONFIG", str(tmp_path / "gone.yaml"))
    assert run(["init", "--yes"]) == 0
    assert here in capsys.readouterr().out
    monkeypatch.delenv("SM_CONFIG")
    for suffix in ("yaml", "toml"):
        (clone / f"sm.{suffix}").write_text("")
        allow(clone / f"sm.{suffix}", b"")
    assert run(["init", "--yes"]) == 0
    said = capsys.readouterr().out
    assert here in said
    assert "--loop" in said


# -- the questions -------------------------------------------------------------------------------


def answer(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_questions_offer_what_was_found(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "coral", "", "codex", "none", "y")
    assert run(["init"]) == 0
    made = project("coral")
    assert made.repo == clone
    assert made.primary_branch == "main"
    assert made.agent.command.startswith("codex --")
    assert profiles.resolve(made.agent, {}).glyph == "›"
    assert made.ci.command is None


@pytest.mark.usefixtures("clone")
def test_a_name_and_a_branch_that_cannot_be_are_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    assert run(["init", "--yes", "--repo", str(other), "--name", "taken"]) == 0
    capsys.readouterr()
    answer(monkeypatch, "my shop", "taken", "coral", "mian", "a..b", "main", "", "none", "y")
    assert run(["init"]) == 0
    said = capsys.readouterr().err
    asked = [
        said.index(word) for word in ("'my shop' cannot be", "project 'taken' of", "agent command")
    ]
    assert asked == sorted(asked)
    assert "has no branch 'mian'" in said
    assert "git refuses 'a..b'" in said
    assert project("coral").primary_branch == "main"


def without_agent(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.unlink()
    for name in ("git", "sh"):
        (agent.parent / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(agent.parent))


def test_without_an_agent_an_empty_answer_ends_it_with_what_to_do(
    clone: Path, agent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_agent(agent, monkeypatch)
    answer(monkeypatch, "", "", "")
    assert run(["init"]) == 2
    told = capsys.readouterr()
    assert "found none of claude, codex on PATH: install one" in told.out
    assert told.err.endswith("sm: found no agent command: give it by --agent\n")
    assert not (clone.parent / "reef-hub").exists()


@pytest.mark.usefixtures("clone")
def test_an_agent_that_is_named_and_not_there_is_said_to_be_missing(
    agent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_agent(agent, monkeypatch)
    answer(monkeypatch, "", "", "claude", "", "y", "n")
    assert run(["init"]) == 0
    said = capsys.readouterr().out
    assert "agent: claude --dangerously-skip-permissions" in said
    assert "agent 'claude' is not on PATH: install it, or set 'agent.command'" in said


@pytest.mark.parametrize(
    ("word", "passed", "withheld"),
    [("y", ("IS_SANDBOX", "https_proxy"), ()), ("n", (), ("IS_SANDBOX", "https_proxy"))],
)
@pytest.mark.usefixtures("clone")
def test_of_variables_that_agents_do_not_see_a_person_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    word: str,
    passed: tuple[str, ...],
    withheld: tuple[str, ...],
) -> None:
    monkeypatch.setenv("IS_SANDBOX", "1")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    answer(monkeypatch, "", "", "", word, "", "y", "n")
    assert run(["init"]) == 0
    assert "your environment: IS_SANDBOX, https_proxy; let them?" in capsys.readouterr().err
    agent = project().agent
    assert (agent.pass_env, agent.withheld_env) == (passed, withheld)
    assert list_hidden(agent) == []
    answer(monkeypatch, "", "", "", "", "y", "n")
    assert run(["init"]) == 0
    assert "let them?" not in capsys.readouterr().err
    assert project().agent == agent


def test_no_means_nothing_is_changed(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "", "", "", "n")
    assert run(["init"]) == 1
    assert capsys.readouterr().err.endswith("sm: nothing was changed\n")
    assert not (clone.parent / "reef-hub").exists()
    assert git(clone, "remote") == ""


@pytest.mark.usefixtures("clone")
def test_an_input_that_ends_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch)
    assert run(["init"]) == 2
    assert capsys.readouterr().err.endswith("sm: no answer: the input has ended\n")


# -- what a repository tells ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ""),
        ({"tests/test_x.py": ""}, "python3 -m pytest -q"),
        ({"tests/x.rs": "", "Cargo.toml": ""}, "cargo test"),
        ({"tests/x": "", "setup.cfg": ""}, "python3 -m pytest -q"),
        ({"go.mod": ""}, "go test ./..."),
        ({"Makefile": "all:\n\ttrue\ntest: all\n", "go.mod": ""}, "make test"),
        ({"Makefile": "all:\n\ttrue\nx-test:\n"}, ""),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
        (
            {
                "package.json": '{"scripts": {"test": "x"}, "devDependencies": {"x": "1"}}',
                "package-lock.json": "{}",
            },
            "npm ci && npm test",
        ),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, ""),
        ({"package.json": "{"}, ""),
        ({"package.json": "[]"}, ""),
    ],
)
def test_the_ci_command_is_guessed(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for name, text in files.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    assert discover.guess_ci_command(repo) == expected


@pytest.mark.parametrize(
    ("url", "is_found"),
    [
        ("{bare}", True),
        ("file://{bare}", True),
        ("../hub.git", True),
        ("../hub", True),
        ("{clone}", False),
        ("{bare}-gone", False),
        ("https://x.invalid/hub.git", False),
        ("ssh://x.invalid/hub.git", False),
        ("git@x.invalid:hub.git", False),
    ],
)
def test_a_local_bare_remote_is_recognised(tmp_path: Path, url: str, is_found: bool) -> None:
    repository: Repository = make_repository(tmp_path)
    values = {"bare": repository.bare, "clone": repository.clone}
    git(repository.clone, "remote", "set-url", "origin", url.format(**values))
    (remote,) = discover.list_remotes(repository.clone)
    assert remote.bare == (repository.bare if is_found else None)


def test_the_primary_branch_is_the_remotes(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    git(repository.clone, "checkout", "-q", "-b", "topic")
    assert discover.find_primary_branch(repository.clone, "origin") == "main"
    assert discover.find_primary_branch(repository.clone, None) == "topic"
    git(repository.bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(repository.clone, "push", "-q", "origin", "topic:trunk")
    git(repository.clone, "remote", "set-head", "origin", "--delete")
    assert discover.find_primary_branch(repository.clone, "origin") == "trunk"


UNUSABLE = {"line break": "has a line break", "not UTF-8": "is not UTF-8"}


def unusable(name: str) -> str:
    return os.fsdecode({"line break": b"re\nef", "not UTF-8": b"re\xffef"}[name])


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("named", [True, False])
def test_a_clone_in_whose_path_no_ci_could_run_is_refused_before_anything_is_made(
    clone: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    named: bool,
) -> None:
    """Each CI run failed there, for ever."""
    moved = clone.rename(clone.with_name(unusable(name)))
    monkeypatch.chdir("/" if named else moved)
    said = refused(capsys, *(["--repo", str(moved)] if named else []))
    assert UNUSABLE[name] in said
    assert "rename it" in said
    assert len(said.splitlines()) == 1
    assert list(moved.parent.iterdir()) == [moved]


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_forge_with_such_a_path_is_refused(
    clone: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    forge = clone.with_name(unusable(name))
    assert UNUSABLE[name] in refused(capsys, "--forge-path", str(forge))


def test_a_hub_with_a_line_break_in_its_path_is_refused(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = clone.with_name(unusable("line break"))
    git(clone, "init", "-q", "--bare", str(hub))
    git(clone, "remote", "add", "origin", str(hub))
    git(clone, "push", "-q", "origin", "HEAD")
    assert "has a line break" in refused(capsys)


# -- the CI command ------------------------------------------------------------------------------

ANSWERS = ["", "", "", "true", ""]
"""Name, branch, agent, CI, and to go ahead: but for CI as found. Not every machine has make."""


def _answer(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.mark.parametrize(("answer", "runs"), [(["y"], True), (["n"], False), ([], False)])
def test_the_ci_command_is_tried_only_where_a_person_wants_it(
    clone: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: list[str],
    runs: bool,
) -> None:
    _answer(monkeypatch, *ANSWERS, *answer)
    assert run(["init"]) == 0
    said = capsys.readouterr()
    assert "run the CI command once now, on 'master'" in said.err.replace("main", "master")
    assert ("CI passes, in " in said.out) is runs
    assert ("CI was not tried: " in said.out) is not runs


def test_with_yes_ci_is_not_tried_but_by_its_option(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes", "--ci", "echo boom zebra; exit 3"]) == 0
    assert "doctor --ci runs it once" in capsys.readouterr().out
    args = ["--ci", "echo boom zebra; exit 3", "--try-ci"]
    assert run(["init", "--yes", *args]) == 0
    said = capsys.readouterr()
    assert "boom zebra\n" in said.err
    assert "mend 'ci.command' in" in said.err


def test_ci_that_cannot_be_tried_now_keeps_nothing_from_being_said(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes", "--ci", "true"]) == 0
    config = load(None, os.environ, clone)
    forge = local_forge(Project(config, config.projects[0]))
    check = forge.checks.folder(git(clone, "rev-parse", "HEAD"))
    check.path.mkdir(parents=True, mode=0o700)
    capsys.readouterr()
    with lock.hold(check.lock):
        assert run(["init", "--yes", "--ci", "true", "--try-ci"]) == 0
    said = capsys.readouterr()
    assert "CI is at work" in said.err
    assert "--loop" in said.out


def test_what_init_writes_into_the_clone_counts_until_it_is_changed(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--yes", "--output", "sm.yaml"]) == 0
    assert "export SM_CONFIG" not in capsys.readouterr().out
    assert load(None, os.environ, clone).source == clone / "sm.yaml"
    with (clone / "sm.yaml").open("a") as file:
        file.write("notify_command: touch x\n")
    assert run(["issue", "list"]) == 2
    assert "'sm.yaml' has changed since you allowed it" in capsys.readouterr().err
