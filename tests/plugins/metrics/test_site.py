"""What a scrape answers, read by the parsers of prometheus-client itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

from sm.adapters.forge.model import CheckState
from sm.issues.look.tick_record import Clock, Polled
from sm.passes.tally import BOUNDS, PassEnd, Sums
from sm.plugins.cost.settings import find_ledger
from sm.plugins.forges.rest.state import ForgeFiles
from sm.plugins.forges.web.ledger import Hour, QuotaBook, RequestCount
from sm.plugins.forges.web.limits import RateLimit
from sm.plugins.metrics.measures import MEASURES, OTHER, TOOK, Bounded
from sm.plugins.metrics.reader import RequestCounts
from sm.plugins.windows.figures import AccountFigures, WindowFigures, locate
from sm.sessions.failure import Usage, UsageLimit
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store import events
from sm.store.events import MessageEnd, RotationStep
from sm.store.files import ensure_private_dir, write_json
from sm.web.guard import GuardRules
from tests.helpers import a_pull, an_issue, put_session, put_snapshot
from tests.plugins.page.client import TOKEN, Browser, make_server
from tests.plugins.page.conftest import browser as browser
from tests.plugins.page.conftest import project as project
from tests.plugins.page.past import spend, use

READS = "r" * 32
OPEN = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
HOSTILE = 'a"b\\c\nd{e="f"} 1\n# TYPE x counter\u202e\x00' + "x" * 300


@pytest.fixture
def ledger(project: Project) -> Path:
    path = find_ledger(project.machine.settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


Read = Mapping[str, Metric]
Samples = dict[tuple[str, ...], float]


def scrape(browser: Browser) -> Read:
    """Scrape it in both formats, which say the same."""
    plain, opened = browser.get("/metrics"), browser.get("/metrics", accept=OPEN)
    assert (plain.status_code, opened.status_code) == (200, 200)
    # The plain format has the name of the series, the open one that of the family.
    found = {one.name.removesuffix("_total"): one for one in read_plain(plain.text)}
    names = {one.name: one.type for one in read_open(opened.text)}  # type: ignore[no-untyped-call]
    assert names == {name: one.type for name, one in found.items()}
    return found


def values(found: Read, name: str, *labels: str) -> Samples:
    return {tuple(one.labels[label] for label in labels): one.value for one in found[name].samples}


def value(found: Read, name: str) -> float:
    return values(found, name)[()]


def tell(project: Project, *told: events.Event) -> None:
    for event in told:
        project.record(event)


def test_each_metric_has_its_type_its_help_and_its_name(project: Project, browser: Browser) -> None:
    ensure_private_dir(project.root.private)
    write_json(project.root.passes_made, Sums(1.0, {}, [0] * (len(BOUNDS) + 1)))
    found = scrape(browser)
    assert set(found) == {one.name for one in MEASURES} | {TOOK}
    for measure in MEASURES:
        metric = found[measure.name]
        assert metric.type == ("counter" if measure.counts else "gauge")
        assert metric.documentation == measure.help
        suffix = "_total" if measure.counts else ""
        assert {one.name for one in metric.samples} <= {measure.name + suffix}
        assert all(set(one.labels) == set(measure.labels) for one in metric.samples)
        assert measure.help.endswith(".")
    assert all(values(found, "sm_part_up", "part").values())


def test_an_empty_machine_says_nothing_rather_than_no_number(browser: Browser) -> None:
    found = scrape(browser)
    assert not found["sm_cost_dollars"].samples
    assert not found["sm_poll_last_timestamp_seconds"].samples
    assert value(found, "sm_messages_waiting") == 0
    assert set(values(found, "sm_messages_sent", "status").values()) == {0}


def test_sessions_and_needs_are_those_of_the_page(project: Project, browser: Browser) -> None:
    put_session(project, 3, "A secret title", phase="PHASE:awaiting_review\n")
    put_session(project, 14159, "Another", phase="PHASE:awaiting_ci\n")
    put_snapshot(project, an_issue(3), a_pull(24, "fix/3", CheckState.SUCCESS))
    text = browser.get("/metrics").text
    found = scrape(browser)
    there = {key: number for key, number in sessions(found).items() if number}
    assert there == {("harb", "awaiting review"): 1, ("harb", "awaiting CI"): 1}
    assert values(found, "sm_needs", "kind")["review",] == 1
    assert values(found, "sm_need_oldest_timestamp_seconds", "kind")["review",] > 1e9
    assert "secret" not in text
    assert "14159" not in text


def sessions(found: Read) -> Samples:
    return values(found, "sm_sessions", "project", "state")


def test_what_the_journal_tells_is_counted(project: Project, browser: Browser) -> None:
    session = "dev-harb-7"
    tell(
        project,
        events.Started(session=session, title="Mend it"),
        events.MessageSent(session=session, id="a", mode="sequential", status="accepted"),
        events.MessageSent(session=session, id="b", mode="sequential", status="no such word"),
        *(events.MessageOutcome(session=session, id="a", outcome=one) for one in MessageEnd),
        events.Cancelled(session=session, id="b"),
        events.Decided(session=session, row="ci-failed"),
        events.Decided(session=session, row="review-changes"),
        events.Decided(session=session, row="recover"),
        events.Rotation(session=session, step=RotationStep.FINISHED),
        events.Rotation(session=session, step=RotationStep.GIVEN_UP),
        events.Compacted(session=session, trigger="auto"),
        events.Problem(session=session, text="secret"),
        events.StepDone(session=session, verb=StepVerb.FORGET, row="merged"),
    )
    found = scrape(browser)
    for name in ("issues_merged", "ci_attempts", "review_rounds", "agent_restarts"):
        assert values(found, f"sm_{name}", "project") == {("harb",): 1}, name
    sent = values(found, "sm_messages_sent", "status")
    assert (sent["accepted",], sent[OTHER,], sent["typed",]) == (1, 1, 0)
    settled = values(found, "sm_messages_settled", "outcome")
    assert settled == {(one,): 1 for one in (*MessageEnd, "cancelled")}
    assert set(values(found, "sm_context_rotations", "result").values()) == {1}
    assert values(found, "sm_context_compactions", "trigger")["auto",] == 1
    assert value(found, "sm_problems") == 1
    tell(project, events.Problem(session=session))
    assert value(scrape(browser), "sm_problems") == 2


def test_time_goes_on_while_a_session_works(project: Project, browser: Browser) -> None:
    put_session(project, 3, "Mend it")
    tell(project, events.Started(session="dev-harb-3"))

    def worked() -> float:
        found = scrape(browser)
        return values(found, "sm_issue_time_seconds", "project", "turn")["harb", "agent"]

    assert 0 <= worked() < worked() < 60


def test_what_it_cost_is_what_sm_cost_says(ledger: Path, browser: Browser) -> None:
    now = time.time()
    first, *_ = used = [use(n, now, project="harb", model="opus") for n in (1, 2)]
    unknown = use(3, now, project="harb", model="model-without-a-price")
    spend(ledger, [*used, unknown])
    found = scrape(browser)
    assert values(found, "sm_model_requests", "project", "model") == {
        ("harb", "opus"): 2,
        ("harb", "model-without-a-price"): 1,
    }
    [(labels, dollars)] = values(found, "sm_cost_dollars", "project", "model").items()
    assert (labels, round(dollars, 6)) == (
        ("harb", "opus"),
        round(sum(one[2] or 0 for one in used), 6),
    )
    unpriced = values(found, "sm_model_requests_unpriced", "project", "model")
    assert unpriced == {("harb", "opus"): 0, ("harb", "model-without-a-price"): 1}
    tokens = values(found, "sm_tokens", "model", "kind")
    assert tokens["opus", "output"] == sum(one[1].tokens.output for one in used)
    assert tokens["opus", "cache_read"] == sum(one[1].tokens.cache_read for one in used)
    assert first[1].tokens.output > 0


def test_passes_ticks_and_requests(project: Project, browser: Browser) -> None:
    ensure_private_dir(project.root.private)
    took = [1, 2, *[0] * (len(BOUNDS) - 2), 4]
    write_json(
        project.root.passes_made, Sums(1.0, {PassEnd.DONE: 6, PassEnd.KILLED: 1}, took, 99.5)
    )
    ensure_private_dir(project.directory.path, parents=True)
    write_json(project.directory.polled, Polled(Clock(1.7e9), 0.25, error="secret"))
    limit = RateLimit("core", 5000, 4000, time.time() + 60)
    hour = Hour(time.time() // 3600 * 3600, {"look": RequestCount(10, 6, 1, 4)})
    write_json(ForgeFiles(project.directory.path).quota, QuotaBook((hour,), {"core": limit}))
    found = scrape(browser)
    passes = values(found, "sm_passes", "end")
    assert passes == {("done",): 6, ("failed",): 0, ("killed",): 1, ("elsewhere",): 0}
    bars = {one.labels["le"]: one.value for one in found[TOOK].samples if "le" in one.labels}
    assert (bars["0.025"], bars["0.05"], bars["60.0"], bars["+Inf"]) == (1, 3, 3, 7)
    whole = {one.name: one.value for one in found[TOOK].samples if not one.labels}
    assert whole == {f"{TOOK}_count": 7, f"{TOOK}_sum": 99.5}
    assert values(found, "sm_poll_last_timestamp_seconds", "project") == {("harb",): 1.7e9}
    assert values(found, "sm_poll_last_failed", "project") == {("harb",): 1}
    results = values(found, "sm_forge_requests", "purpose", "result")
    assert results == {("look", "answered"): 3, ("look", "unchanged"): 6, ("look", "failed"): 1}
    assert values(found, "sm_forge_limit_left", "bucket") == {("core",): 4000}


def test_usage_windows_until_they_begin_anew(project: Project, browser: Browser) -> None:
    now = time.time()
    usage = Usage(UsageLimit(94.0, now + 60), UsageLimit(20.0, now - 60))
    ensure_private_dir(locate().parent, parents=True)
    write_json(locate(), WindowFigures({"/home/ada/.claude": AccountFigures(usage, now)}))
    found = scrape(browser)
    used = values(found, "sm_client_window_used_ratio", "account", "window")
    assert used == {("/home/ada/.claude", "five_hours"): 0.94}
    [resets_at] = values(found, "sm_client_window_reset_timestamp_seconds", "window").values()
    assert resets_at == pytest.approx(now + 60)


def test_requests_of_forgotten_hours_stay_counted() -> None:
    counts = RequestCounts()
    first, second = (
        Hour(0, {"look": RequestCount(5, points=5)}),
        Hour(3600, {"look": RequestCount(1)}),
    )
    counts.add("harb", [first])
    counts.add("harb", [first, second])
    grown = Hour(
        3600,
        {"look": RequestCount(2)},
        {"dev-harb-1": {"look": RequestCount(1), "merge": RequestCount(1)}},
    )
    counts.add("harb", [grown])
    counts.add("other", [])
    found = {
        one.purpose: (sum(one.results.values()), one.points) for one in counts.list_counts(str)
    }
    assert found == {"look": (8, 5), "merge": (1, 0)}


def test_words_of_others_stay_in_their_labels(ledger: Path, browser: Browser) -> None:
    spend(ledger, [use(1, time.time(), project=HOSTILE, model=HOSTILE)])
    found = scrape(browser)
    assert not {name for name in found if not name.startswith("sm_")}
    [(project, model)] = values(found, "sm_model_requests", "project", "model")
    for word in (project, model):
        assert word.startswith('a"b\\c')
        assert not set("\n\u202e\x00") & set(word)
        assert len(word) <= 100


def test_labels_are_bounded_and_nobody_changes_the_series(ledger: Path, browser: Browser) -> None:
    now = time.time()
    spend(ledger, [use(n, now, project="harb", model=f"model-{n}") for n in range(1, 150)])
    found = values(scrape(browser), "sm_model_requests", "model")
    assert len(found) == 101
    assert found[OTHER,] == 49
    spend(ledger, [use(n, now, project="harb", model="a-new-one") for n in range(200, 300)])
    later = values(scrape(browser), "sm_model_requests", "model")
    assert later == found | {(OTHER,): 149}


def test_a_bound_gives_each_its_own_and_the_others_one() -> None:
    bound = Bounded(2)
    assert [bound.name(word) for word in "abcadb"] == ["a", "b", OTHER, "a", OTHER, "b"]


def test_counters_never_fall_while_the_server_lives(
    project: Project, ledger: Path, browser: Browser
) -> None:
    spend(ledger, [use(1, time.time(), project="harb", model="opus")])
    tell(project, events.Decided(session="dev-harb-7", row="ci-failed"))
    before = scrape(browser)
    tell(project, events.Dropped(session="dev-harb-7", row="ci-failed"))
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()
    ledger.write_bytes(b"no database " * 100)
    after = scrape(browser)
    for measure in MEASURES:
        if measure.counts:
            assert values(after, measure.name, *measure.labels) == values(
                before, measure.name, *measure.labels
            )
    assert values(after, "sm_part_up", "part")["ledger",] == 0


def test_a_configuration_that_is_broken_leaves_the_rest(
    project: Project, browser: Browser, tmp_path: Path
) -> None:
    put_session(project, 3, "Mend it")
    assert project.machine.source
    project.machine.source.write_text("projects: {")
    up = values(scrape(browser), "sm_part_up", "part")
    assert (up["configuration",], up["journal",], up["passes",]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        (OPEN, "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text;version=no number", "text/plain; version=0.0.4"),
    ],
)
def test_the_client_chooses_the_format(browser: Browser, accept: str, kind: str) -> None:
    answer = browser.get("/metrics", accept=accept)
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.endswith("# EOF\n") is kind.startswith("application")


def test_who_may_read_may_scrape(project: Project) -> None:
    rules = GuardRules(TOKEN, readers=(READS,))
    browser = Browser(make_server(project.machine, rules=rules))
    assert browser.get("/metrics").status_code == 401
    for token in (TOKEN, READS):
        assert browser.get("/metrics", authorization=f"Bearer {token}").status_code == 200
    assert browser.get("/metrics", host="evil.example").status_code == 403
    assert browser.post("/metrics", {}, authorization=f"Bearer {TOKEN}").status_code == 405


def test_nothing_is_counted_for_the_whole_process(project: Project, browser: Browser) -> None:
    scrape(browser)
    ours = list(_names(prometheus_client.REGISTRY.collect()))
    assert not [name for name in ours if name.startswith("sm_")]
    tell(project, events.Problem())
    assert value(scrape(Browser(make_server(project.machine))), "sm_problems") == 1
    assert value(scrape(browser), "sm_problems") == 1


def _names(metrics: Iterable[Metric]) -> Iterator[str]:
    return (metric.name for metric in metrics)


def test_the_server_starts_without_the_library() -> None:
    code = (
        "import sys; from sm.base import plugin; from sm.plugins import find_plugins\n"
        "plugin.use(find_plugins)\n"
        "from sm.plugins.http.app import load_added, load_sites\n"
        "print([one.paths for one in load_sites()], load_added())\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    sites, loaded = done.stdout.splitlines()
    assert "/metrics" in sites
    assert not {"prometheus_client", "pygal", "jinja2"} & set(loaded.split())


def test_the_documents_have_every_metric_and_no_other() -> None:
    text = (Path(__file__).parents[3] / "docs" / "METRICS.md").read_text()
    names = {f"{one.name}_total" if one.counts else one.name for one in MEASURES} | {TOOK}
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `sm_")]
    assert {row.strip().strip("`") for row in rows} == names
    for one in MEASURES:
        [line] = [line for line in text.splitlines() if f"| `{one.name}" in line and _is(one, line)]
        assert all(f"`{label}`" in line for label in one.labels), one.name


def _is(measure: object, line: str) -> bool:
    name = getattr(measure, "name") + ("_total" if getattr(measure, "counts") else "")  # noqa: B009
    return line.startswith(f"| `{name}` |")
