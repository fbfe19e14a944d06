"""Checks of `sm doctor` for each project: settings, forge, CI, and what is left over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from sm.adapters.agent import profiles
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.model import Issue
from sm.adapters.forge.protocol import Accounted, Limited
from sm.base.redact import redact
from sm.base.text import one_line
from sm.config import duration
from sm.issues import meters
from sm.issues.look import webhooks
from sm.issues.look.room import find_shortages, list_shortages
from sm.issues.look.tick_record import read_polled
from sm.plugins.doctor.agent_cli import check_version, warn_of_settings
from sm.plugins.doctor.leftovers import check_left
from sm.plugins.doctor.machine import word_shortage
from sm.sessions import launch, registry
from sm.sessions.project import Project
from sm.setup import variables
from sm.setup.finding import Finding, fail, ok, warn
from sm.setup.problems import list_first_questions, list_project_problems
from sm.setup.repository import list_troubles
from sm.setup.trial import try_ci
from sm.views.poll_absence import find_silence, is_waited_for, word_silence
from sm.views.session import read_last_look


def check_settings(project: Project) -> Iterator[Finding]:
    """Check repository, remote, primary branch, forge, vault, agent program."""
    problems = list(list_project_problems(project.settings, project.config.profiles))
    yield from map(fail, problems)
    if not problems:
        settings = project.settings
        yield ok(f"'{settings.repo}', {settings.remote}/{settings.primary_branch}")


def check_repository(project: Project) -> Iterator[Finding]:
    """Look for what keeps agents from working on the clone as its owner does."""
    for trouble in list_troubles(project.settings):
        yield warn(trouble.what, trouble.advice)


def check_forge(project: Project) -> Iterator[Finding]:
    """Check that everything on the forge can be read."""
    found = project.forge.observe(start_checks=False)
    for problem in found.problems:
        yield warn(one_line(problem), "the others go on without it")
    if not found.problems:
        yield ok(f"forge: {len(found.issues)} issues, {len(found.pulls)} pull requests")
    if tracker := project.settings.tracker:
        every = duration.show(project.settings.ci.poll_s)
        yield ok(f"issues are from {tracker.kind}, {tracker.place}: sm looks there every {every}")
    if isinstance(project.forge, Accounted):
        yield from _find_mention_of_self(project, project.forge.find_account(), found.issues)
    if isinstance(project.forge, Limited):
        for limit in project.forge.find_limits():
            yield warn(limit, "docs/FORGES.md says what a token needs")


def _find_mention_of_self(
    project: Project, account: str, issues: Iterable[Issue]
) -> Iterator[Finding]:
    """Warn if the account that writes the questions is the one that they name.

    GitHub notifies nobody of their own comments; for the other forges that is unproven.
    """
    mention = project.settings.escalation.mention
    asked = {name for issue in issues for name in issue.assignees or (issue.author,)}
    if account in (mention or asked):
        yield warn(
            f"sm writes there as '{account}', and a forge tells nobody of their own words: "
            f"'{account}' hears of a question by other channels alone",
            "give sm an account of its own, or set notify or notify_command",
        )


def check_webhooks(project: Project) -> Iterator[Finding]:
    """Check that the secret of webhooks can be read, and whether they arrive."""
    settings = project.settings.forge
    if not settings.is_elsewhere:
        return
    every = duration.show(project.settings.ci.poll_s)
    if not settings.has_webhooks:
        yield ok(f"no webhooks are configured: sm looks at the forge every {every}")
        return
    # A variable is that of sm serve, and need not be here.
    if settings.webhook_secret_command or settings.webhook_secret_file:
        kind_of(settings).expect_webhooks(settings)
    heard = webhooks.read_heard_webhooks(project.root.project(project.name))
    if not heard.at:
        yield warn(
            f"no webhook has arrived yet: sm looks at the forge every {every}",
            "start sm serve, and have the forge deliver to /webhooks/"
            f"{project.name} there: docs/FORGES.md",
        )
        return
    ago = duration.show(max(time.time() - heard.at, 0) // 1)
    event = f" ({heard.event})" if heard.event else ""
    yield ok(f"webhooks: the last one arrived {ago} ago{event}")


def check_meters(project: Project) -> Iterator[Finding]:
    """Name the meters that cannot tell what may be spent: until they can, nothing is begun."""
    for failure in meters.list_failures(project):
        yield fail(one_line(failure), "until then agents end their turns, and nothing is begun")


def check_agent_cli(project: Project) -> Iterator[Finding]:
    """Check the agent's program and, if it is a known one, its version."""
    agent = project.settings.agent
    yield check_version(agent, profiles.resolve(agent, project.config.profiles))


def check_first_questions(project: Project) -> Iterator[Finding]:
    """Check whether the agent's questions at a first start are answered."""
    settings = project.settings
    found = list_first_questions(
        settings.agent, project.config.profiles, settings.repo, settings.worktrees
    )
    yield from (warn(what, advice) for what, advice in found)


def check_own_settings(project: Project) -> Iterator[Finding]:
    """Look for settings of the person's that keep messages from the agent."""
    settings = project.settings
    yield from warn_of_settings(
        settings.agent, profiles.resolve(settings.agent, project.config.profiles), settings.repo
    )


def check_environment(project: Project) -> Iterator[Finding]:
    """Look for variables of your shell, and folders of its PATH, that agents do not see."""
    agent = project.settings.agent
    if names := variables.list_hidden(agent):
        what, _, advice = variables.describe_hidden(names).partition(": ")
        yield warn(what, advice)
    paths = {"agent.env": agent.env["PATH"]} if "PATH" in agent.env else {}
    for session in registry.list_for(project):
        if path := launch.read_environment(session.dir).get("PATH"):
            paths[f"session '{session.name}'"] = path
    for where, path in paths.items():
        if missing := variables.list_missing_folders(path):
            yield warn(
                f"the PATH of {where} lacks {', '.join(missing)} of yours",
                "if its tools are there: set PATH in agent.env, or start dev-poll with yours",
            )
    if not names:
        yield ok("agents see what your shell has for them")


def check_room(project: Project) -> Iterator[Finding]:
    """Check the room for worktrees; the machine's check is about the room for the state."""
    known = {one.key for one in find_shortages(project.config.keep_free, [project.root.path])}
    found = list_shortages(project)
    yield from (word_shortage(one) for one in found if one.key not in known)


def check_dev_poll(project: Project) -> Iterator[Finding]:
    """Check whether dev-poll runs, where something waits for it, and how its last tick went."""
    known, start = read_last_look(project), "dev-poll --loop, or from cron: dev-poll --once"
    last = read_polled(project.root.project(project.name))
    if last is None and not known.taken_at:
        yield warn("dev-poll has never run", start)
        return
    if silence := find_silence(project, known):
        if is_waited_for(project, registry.list_for(project), known):
            yield fail(f"{word_silence(silence)}, and there is work for it", start)
        else:
            yield ok(f"{word_silence(silence)}, and nothing waits for it")
        return
    if last is None or not last.failed:
        yield ok("dev-poll runs")
        return
    went_wrong = last.error or last.unable[0]
    yield warn(f"the last tick of dev-poll failed: {one_line(went_wrong)}", "dev-poll says more")


def check_ci_exists(project: Project) -> Iterator[Finding]:
    """Check whether there is CI. It runs only when a person asks for it."""
    forge = project.settings.forge
    if forge.is_elsewhere:
        yield ok(
            "CI: what the forge says of each commit"
            if forge.has_ci
            else "no CI: 'forge.has_ci' is false"
        )
    elif command := project.settings.ci.command:
        shown = one_line(redact(command))
        yield ok(f"CI: '{shown}'; sm doctor --ci runs it once on the primary branch")
    else:
        yield ok("no CI: 'ci.command' is empty")


def check_ci(project: Project) -> Iterator[Finding]:
    """Run the CI command on the primary branch as it is."""
    settings = project.settings
    if settings.forge.is_elsewhere or not settings.ci.command:
        yield from check_ci_exists(project)
        return
    found = try_ci(project)
    if found.passed:
        yield ok(f"CI passes on '{settings.primary_branch}', in {found.took_s:.1f} s")
        return
    last = one_line(" / ".join(found.log.splitlines()[-LAST_LINES:]))
    yield fail(
        f"CI: {found.state} on '{settings.primary_branch}' ({one_line(found.step)}): {last}",
        "mend 'ci.command', or the branch: every issue would fail by it, and spend its attempts",
    )


LAST_LINES = 3
"""Lines of a failing log that are shown."""

CHECKS: tuple[Callable[[Project], Iterator[Finding]], ...] = (
    check_settings,
    check_repository,
    check_agent_cli,
    check_first_questions,
    check_own_settings,
    check_environment,
    check_forge,
    check_webhooks,
    check_meters,
    check_room,
    check_left,
    check_dev_poll,
)
"""Checks in the order of the output."""
