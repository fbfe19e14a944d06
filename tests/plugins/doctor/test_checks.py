"""What `sm doctor` says of plugins."""

from __future__ import annotations

import pytest

from sm.base import plugin
from sm.base.plugin import ForgeKind, Plugin, Registry, Verb
from sm.plugins import OURS
from sm.plugins.doctor.checks import ADVICE, check_plugins, guard_plugin
from sm.setup.finding import Finding, Level, fail, ok

GOOD = Plugin(verbs={"knock": Verb("json:dumps", "Knock.")}, checks={"door": "json:loads"})
BAD = Plugin(
    forges={"nowhere": ForgeKind("no.such.module", "no.such.module:SETTINGS")},
    agents={"claude": "json:dumps"},
    sections={"labels": "json:dumps"},
    verbs={"status": Verb("json:dumps", "Show another status.")},
)


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plugins beside ours, and one that is not there."""
    places = [*OURS.items(), ("good", f"{__name__}:GOOD"), ("bad", f"{__name__}:BAD")]
    places += [("chat", "my_chat:PLUGIN"), ("gone", "no_such_plugin:PLUGIN")]
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: places))


def test_what_a_plugin_adds_is_told() -> None:
    assert ok("plugin 'good': verbs 'knock', checks 'door'") in [*check_plugins()]


def test_each_fault_is_told_with_its_plugin_and_reason() -> None:
    found = [one for one in check_plugins() if one.level is not Level.OK]
    assert {one.advice for one in found} == {ADVICE}
    assert [one.what.removeprefix("plugin ") for one in found] == [
        "'chat' cannot be used as it is: 'my_chat:PLUGIN' is left out: "
        "plugin 'chat' is 'sm.plugins.chat.plugin:PLUGIN'",
        "'gone' cannot be used as it is: ModuleNotFoundError: No module named 'no_such_plugin'",
        "'bad' cannot be used as it is: agents: 'claude' is a name of sm's own",
        "'bad' cannot be used as it is: sections: 'labels' is a name of sm's own",
        "'bad' cannot be used as it is: verbs: 'status' is a name of sm's own",
        "'bad' cannot be used as it is: forges: plugin 'bad' cannot give 'nowhere': "
        "ModuleNotFoundError: No module named 'no'",
    ]


def test_a_check_that_breaks_off_is_a_finding() -> None:
    def check() -> list[Finding]:
        raise ZeroDivisionError("by zero")

    why = "a check of a plugin has failed: ZeroDivisionError: by zero"
    assert [*guard_plugin(check)] == [fail(why)]
