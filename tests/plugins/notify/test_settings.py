"""The section `notify`: what is wrong in it is named, and an address is shown to nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.base.need import NeedKind
from sm.config.load import load
from sm.config.schema import Config
from sm.config.shapes import list_variables, read_section
from sm.config.text import format_yaml, list_effective
from sm.plugins.notify.settings import Notify

PROJECT = "name: harb\nrepo: clone\nforge: {kind: local, path: forge}\n"
ADDRESS = "ntfys://tk_secret@ntfy.example.com/topic"


def read(folder: Path, notify: str) -> Config:
    path = folder / "sm.yaml"
    path.write_text(f"{PROJECT}notify: {{{notify}}}\n")
    return load(path, {}, folder)


@pytest.mark.parametrize(
    ("notify", "said"),
    [
        ("page: sm.example.com", "'notify.page' .*: expected text such as https://sm.example.com"),
        ("quiet: 22-07", r"'notify.quiet' .*: expected text such as 22:00-07:00, got '22-07'"),
        ("quiet: '24:00-07:00'", "expected text such as 22:00-07:00"),
        ("channels: {phone: {quiet: late}}", "'notify.channels.phone.quiet' .* such as 22:00"),
        ("channels: {phone: {needs: [qestion]}}", r"phone.needs\[1\]' .*: expected question or"),
        ("channels: {phone: {ulr: x}}", r"'notify.channels.phone.ulr' .*: did you mean 'url'"),
        ("channels: {a/b: {url: x}}", "notify.channels: 'a/b' cannot be a file name"),
        ("chanels: {}", "did you mean 'channels'"),
    ],
)
def test_what_is_wrong_is_named_with_its_channel(tmp_path: Path, notify: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(tmp_path, notify)


def test_an_address_in_place_of_a_section_is_not_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a section of keys") as refused:
        read(tmp_path, f"channels: {{phone: '{ADDRESS}'}}")
    assert "secret" not in refused.value.message


def test_an_address_is_shown_to_nobody(tmp_path: Path) -> None:
    config = read(tmp_path, f"channels: {{phone: {{url: '{ADDRESS}', needs: [review]}}}}")
    [settings] = [read_section(one, Notify) for one in config.projects]
    assert settings.channels["phone"].url.text == ADDRESS
    assert settings.channels["phone"].needs == (NeedKind.REVIEW,)
    shown = format_yaml(list_effective(config))
    assert "url: '[redacted]'" in shown
    for said in (shown, repr(config), str(settings)):
        assert "tk_secret" not in said


def test_a_variable_with_an_address_is_kept_by_monitors(tmp_path: Path) -> None:
    config = read(tmp_path, "channels: {phone: {url_env: PHONE}, desk: {url: 'json://x'}}")
    assert list_variables(config.projects[0]) == ("PHONE",)
    assert list_variables(config) == ()


def test_a_channel_may_have_quiet_hours_of_its_own(tmp_path: Path) -> None:
    channels = "{a: {url: x}, b: {url: x, quiet: '12:00-13:00'}, c: {url: x, quiet: ''}}"
    config = read(tmp_path, f"quiet: '22:00-07:00', channels: {channels}")
    settings = read_section(config.projects[0], Notify)
    found = {name: settings.find_quiet(one) for name, one in settings.channels.items()}
    assert found == {"a": "22:00-07:00", "b": "12:00-13:00", "c": ""}


@pytest.mark.parametrize("page", ["https://sm.example.com", "https://sm.example.com/"])
def test_a_page_has_a_link_for_each_session(tmp_path: Path, page: str) -> None:
    settings = read_section(read(tmp_path, f"page: '{page}'").projects[0], Notify)
    assert settings.link_to("dev-harb-7") == "https://sm.example.com/#need-dev-harb-7"
    assert Notify().link_to("dev-harb-7") == ""
