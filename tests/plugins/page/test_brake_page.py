"""The brake of the page: everything or a project rests, and goes on."""

from __future__ import annotations

from sm.messages.suspension import name_project
from sm.sessions import pause
from sm.sessions.pause import EVERYTHING
from sm.sessions.project import Project
from tests.plugins.page.client import Browser


def test_a_project_and_all_rest_and_go_on(project: Project, browser: Browser) -> None:
    browser.log_in()

    def find_paused() -> tuple[bool, bool]:
        found = pause.read(project.root)
        parts = (name_project(project.name), EVERYTHING)
        of_project, of_all = (found.find_exactly(part) is not None for part in parts)
        return of_project, of_all

    page = browser.get("/page/brake").text
    assert page.count("not paused") == 2
    assert "is paused" in browser.act(act="pause", project=project.name).text
    assert find_paused() == (True, False)
    assert "Resume" in browser.get("/page/brake").text
    assert browser.act(act="pause").status_code == 200
    assert find_paused() == (True, True)
    assert browser.get("/page/brake").text.count("<li>") == 1, "all of it goes on first"
    assert browser.act(act="resume").status_code == 200
    assert find_paused() == (False, False)


def test_a_project_that_is_gone_is_told(browser: Browser) -> None:
    browser.log_in()
    assert browser.act(act="pause", project="gone").status_code == 404


def test_who_only_reads_sees_what_rests_and_has_no_brake(browser: Browser) -> None:
    page = browser.get("/page/brake").text
    assert "not paused" in page
    assert 'value="pause"' not in page
    assert browser.act(act="pause").status_code == 401
