"""What the stream tells: what has changed, to whom, and from where on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from msgspec import json
from sse_starlette import ServerSentEvent

from sm.plugins.page import session_files
from sm.plugins.page import stream as streams
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.stream import Changed, Stream
from sm.sessions.project import Project
from sm.store import events, journal
from tests.helpers import HANG_S, put_session
from tests.plugins.page.client import Browser
from tests.plugins.page.untold import make_untold

Told = AsyncIterator[ServerSentEvent]


def record(project: Project, session: str) -> None:
    project.record(events.Monitor(session=session, state="started"))


async def hear(told: Told) -> Changed:
    async with asyncio.timeout(HANG_S):
        word = await anext(told)
    assert word.id is not None
    found = json.decode(str(word.data), type=Changed)
    assert word.id == str(found.position)
    return found


def run(project: Project, act: Callable[[Stream], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(_run(project, act), HANG_S))


async def _run(project: Project, act: Callable[[Stream], Awaitable[None]]) -> None:
    stream = Stream(BoardReader(project.machine))
    await act(stream)
    assert not stream._listeners


def test_each_listener_hears_of_each_change(project: Project) -> None:
    async def act(stream: Stream) -> None:
        both = stream.listen(None), stream.listen(None)
        for told in both:
            assert (await hear(told)).sessions == ()
        record(project, "dev-harb-3")
        for told in both:
            found = await hear(told)
            assert found.sessions == ("dev-harb-3",)
            assert found.position == journal.find_size(project.root.journal)
            await told.aclose()

    run(project, act)


def test_who_comes_back_hears_what_was_missed(project: Project) -> None:
    record(project, "dev-harb-3")
    position = journal.find_size(project.root.journal)
    record(project, "dev-harb-4")
    record(project, "")

    async def act(stream: Stream) -> None:
        told = stream.listen(position)
        assert (await hear(told)).sessions == ("", "dev-harb-4")
        await told.aclose()

    run(project, act)


def test_who_reads_slowly_hears_all_of_it_in_one_word(project: Project) -> None:
    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        [listener] = stream._listeners
        for number in range(1000):
            listener.tell(Changed(number, (f"dev-harb-{number % 3}",)))
        assert await hear(told) == Changed(999, ("dev-harb-0", "dev-harb-1", "dev-harb-2"))
        await told.aclose()

    run(project, act)


def test_what_no_event_tells_is_told_as_well(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "LOOK_S", 0.0)
    monkeypatch.setattr(session_files, "STILL_S", HANG_S)
    session = put_session(project, 3)

    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        session.dir.usage.write_text("41")
        assert (await hear(told)).sessions == (session.name,)
        await told.aclose()

    run(project, act)


def test_a_stream_says_that_it_is_at_work(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ALIVE_S", 0.05)

    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        for _ in range(2):
            async with asyncio.timeout(HANG_S):
                assert (await anext(told)).event == "beat"
        record(project, "dev-harb-3")
        while (word := await anext(told)).event == "beat":
            pass
        assert word.event == "changed"
        await told.aclose()

    run(project, act)


def test_a_stream_that_looks_no_more_has_no_beat(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ALIVE_S", 0.05)

    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        assert stream._task
        stream._task.cancel()  # as if it had failed
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(told)
        await told.aclose()

    run(project, act)


def test_nobody_looks_while_nobody_listens(project: Project) -> None:
    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        await told.aclose()
        assert stream._task
        await stream._task

    run(project, act)


def test_there_is_a_limit_to_listeners(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST", 2)

    async def act(stream: Stream) -> None:
        told = [stream.listen(None) for _ in range(3)]
        for one in told[:2]:
            await hear(one)
        assert len(stream._listeners) == 2
        assert await anext(told[2], None) is None
        await told[0].aclose()
        assert not stream.is_full
        await told[1].aclose()

    run(project, act)


def test_a_change_wakes_the_stream_without_a_look_in_between(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "TOLD_LOOK_S", HANG_S)
    record(project, "dev-harb-3")

    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        for number in (4, 5):
            record(project, f"dev-harb-{number}")
            assert (await hear(told)).sessions == (f"dev-harb-{number}",)
        await told.aclose()

    run(project, act)


def test_who_is_too_much_is_told_so(
    project: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project
    monkeypatch.setattr(streams, "MOST", 0)
    answer = browser.get("/page/stream")
    assert answer.status_code == 503
    assert "Too many browsers" in answer.text
    assert browser.get("/page/changes?since=0").status_code == 200


def test_where_the_kernel_does_not_tell_the_journal_is_looked_at(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_untold(monkeypatch)

    async def act(stream: Stream) -> None:
        told = stream.listen(None)
        await hear(told)
        record(project, "dev-harb-4")
        assert (await hear(told)).sessions == ("dev-harb-4",)
        await told.aclose()

    run(project, act)
