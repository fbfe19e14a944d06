"""The channel to a node, over a real ssh."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.issues.runners import NoAnswerError
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import LinkFiles
from sm.plugins.hosts.ssh import channel, link, links
from sm.plugins.hosts.ssh.client import NONE, Patience, SshNode, ask, greet, read_trouble
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.plugins.hosts.conftest import end_link, find_link, find_master, make_node
from tests.sshd import Sshd, list_children

pytestmark = pytest.mark.long_lived


def test_commands_run_there_by_one_login_and_read_what_comes_from_here(
    node: SshNode, sshd: Sshd
) -> None:
    answer = ask(node, ["send", "nobody", "--", "hello"])
    assert answer.code == 2
    assert answer.stderr.startswith("sm: no session 'nobody'")
    assert greet(node).protocol == wire.PROTOCOL
    link_before = find_link(node)
    answer = ask(node, ["hooks", "--help"], stdin="not read")
    assert answer.code == 0
    assert "Usage" in answer.stdout
    assert find_link(node) == link_before != 0
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == 1


def test_a_host_that_cannot_be_reached_says_why_and_is_reached_again(
    node: SshNode, sshd: Sshd
) -> None:
    ask(node, ["--version"])
    sshd.stop(cut=True)
    with pytest.raises(NoAnswerError, match="host 'box' does not answer") as caught:
        wait_for(lambda: ask(node, ["--version"]) and None, "it to notice")
    assert caught.value.exit_code == 4
    trouble = read_trouble(node.folder)
    assert trouble is not None
    assert trouble.since <= time.time()
    sshd.start()
    wait_for(lambda: answers(node), "the host to be back")
    assert read_trouble(node.folder) is None


def test_a_cut_network_keeps_nobody_waiting_and_is_over_when_it_is(
    node: SshNode, sshd: Sshd
) -> None:
    ask(node, ["--version"])
    began = time.monotonic()
    with frozen(sshd):
        with pytest.raises(NoAnswerError) as caught:
            ask(node, ["--version"], within_s=0.4, patience=Patience(0.5))
        wait_for(lambda: read_trouble(node.folder), "others to be spared the wait")
    assert time.monotonic() - began < 2.0
    assert caught.value.sent, "it may have arrived all the same"
    wait_for(lambda: answers(node), "the network", 60)
    assert read_trouble(node.folder) is None


@contextlib.contextmanager
def frozen(sshd: Sshd) -> Iterator[None]:
    """Have nothing come from the node, and its connections stay open."""
    assert sshd.process
    stopped = [*list_children(sshd.process.pid), sshd.process.pid]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_a_silent_node_is_told_from_one_that_takes_long(node: SshNode, sshd: Sshd) -> None:
    ask(node, ["--version"])
    root = Path(sshd.environment["SM_STATE_ROOT"])
    slow, silence = ("host", "link", str(root)), Patience(silent_s=1.5)
    began = time.monotonic()
    with contextlib.suppress(NoAnswerError):  # its time is over here as it is there
        assert ask(node, slow, within_s=3.0, patience=silence).code
    assert time.monotonic() - began > 2.9
    wait_for(lambda: answers(node), "the node to be heard")
    with frozen(sshd):
        began = time.monotonic()
        with pytest.raises(NoAnswerError) as caught:
            ask(node, slow, within_s=30.0, patience=silence)
        assert "it has said nothing for 2 s" in caught.value.message
        assert caught.value.sent, "it may arrive all the same"
        with pytest.raises(NoAnswerError) as caught:
            ask(node, ["--version"], patience=NONE)
        assert "it has said nothing for 2 s" in caught.value.message
        assert time.monotonic() - began < 4.0
    wait_for(lambda: answers(node), "the network", 60)


def test_a_channel_that_does_not_open_is_not_waited_for_by_who_would_rather_not(
    node: SshNode, tmp_path: Path
) -> None:
    mute = make_script(tmp_path, "sleep 60")
    slow = structs.replace(node, host=structs.replace(node.host, sm=mute))
    began = time.monotonic()
    with pytest.raises(NoAnswerError) as caught:
        ask(slow, ["--version"], patience=Patience(opening_s=1.2))
    assert "no connection within 1 s" in caught.value.message
    assert time.monotonic() - began < 4.0


def answers(node: SshNode, patience_s: float | None = None) -> bool:
    try:
        return ask(node, ["--version"], patience=Patience(patience_s)).code == 0
    except NoAnswerError:
        return False


def test_a_master_that_stands_still_is_replaced(node: SshNode, sshd: Sshd) -> None:
    ask(node, ["--version"])
    stale = find_master(node)
    os.kill(find_link(node), signal.SIGKILL)
    os.kill(stale, signal.SIGSTOP)
    wait_for(lambda: answers(node), "another master")
    assert find_master(node) != stale
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == 2


def test_a_link_that_was_killed_is_started_again(node: SshNode) -> None:
    ask(node, ["--version"])
    killed = find_link(node)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not find_link(node), "its end")
    assert ask(node, ["--version"]).code == 0
    assert find_link(node) not in (0, killed)


def test_who_has_no_time_gets_no_answer_soon(node: SshNode, tmp_path: Path) -> None:
    silent = make_script(tmp_path, "sleep 60")
    slow = structs.replace(node, host=structs.replace(node.host, sm=silent))
    answers_at_all = time.monotonic()
    with pytest.raises(NoAnswerError):
        ask(slow, ["--version"], patience=Patience(0.5))
    assert time.monotonic() - answers_at_all < 2.0
    wait_for(lambda: not answers(slow, 0.2) and read_trouble(slow.folder), "others to be spared it")


def make_script(folder: Path, body: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


HELLO = 'printf \'sm-node {"sm": "9", "protocol": 1, "now": 1.0}\\n\''

BROKEN = {
    "no sm there": "exit 127",
    "too old": "echo \"sm: no such command 'host': see 'sm --help'\" >&2; exit 2",
    "does not understand": 'printf \'sm-node {"sm": "9", "protocol": 9, "now": 1.0}\\n\'; cat',
    "is no sm": "yes",
    "not an answer": f"{HELLO}; read line; echo not an answer; cat >/dev/null",
    "a line without an end": f"{HELLO}; read line; exec yes a | tr -d '\\n'",
    "another shape": f'{HELLO}; read line; echo \'{{"id": "1", "code": []}}\'; cat >/dev/null',
    "gone": f"{HELLO}; read line; exit 0",
    "red": "printf '\\033[31mred\\033]52;c;aGk=\\007\\n' >&2; exit 9",
}


def test_a_node_that_does_not_keep_to_the_protocol_is_named(sshd: Sshd, tmp_path: Path) -> None:
    for number, (how, program) in enumerate(BROKEN.items()):
        state = tmp_path / f"state-{number}"  # what is known of one is not known of the next
        state.mkdir(mode=0o700)
        node = make_node(sshd, Root(state), make_script(tmp_path, program))
        try:
            with pytest.raises(NoAnswerError) as caught:
                ask(node, ["--version"])
        finally:
            end_link(node)
        assert caught.value.message.startswith("host 'box' does not answer: "), how
        assert "\x1b" not in caught.value.message, how
        if how in ("no sm there", "too old", "does not understand", "is no sm"):
            assert how in caught.value.message


def test_answers_that_nobody_has_asked_for_are_passed_over(
    sshd: Sshd, root: Root, tmp_path: Path
) -> None:
    wrong = "".join(f'{{"id": {number}, "code": 7}}\\n' for number in (0, 99, 1 << 40))
    program = f"{HELLO}; read line; printf '{wrong}'; printf '{{\"id\": 1}}\\n'; cat >/dev/null"
    node = make_node(sshd, root, make_script(tmp_path, f"echo welcome; {program}"))
    try:
        assert ask(node, ["--version"]).code == 0
    finally:
        end_link(node)


def test_a_node_that_stands_still_is_hung_up_on(
    sshd: Sshd, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "BEAT_S", 0.2)
    monkeypatch.setattr(channel, "DEAD_S", 0.5)
    monkeypatch.setattr(link, "REST_S", 2.0)
    node = make_node(sshd, root, make_script(tmp_path, f"{HELLO}; exec sleep 600"))
    serving = threading.Thread(target=links.serve, args=[node.root])
    serving.start()
    try:
        wait_for(LinkFiles(node.folder.root).socket.exists, "the link")
        with pytest.raises(NoAnswerError, match="has not answered for"):
            ask(node, ["--version"])
    finally:
        serving.join(20)
        end_link(node)
    assert not serving.is_alive()


def test_a_process_of_ssh_is_closed_even_if_its_end_is_cut_short() -> None:
    """Else asyncio complains of it in whatever test runs when it is collected."""

    async def cut_short() -> None:
        pipe = asyncio.subprocess.PIPE
        lends_its_streams = ("sh", "-c", "exec 3<&0; cat <&3 & exec cat")
        process = await asyncio.create_subprocess_exec(*lends_its_streams, stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"now both run\n")
        await process.stdout.readline()
        ending = asyncio.create_task(channel.end(process))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])
        while process.returncode is None:  # `wait` would wait for its streams, too
            await asyncio.sleep(0.01)

    asyncio.run(cut_short())
    gc.collect()  # a complaint fails this test


def test_a_host_that_is_elsewhere_now_is_reached_there(node: SshNode, tmp_path: Path) -> None:
    ask(node, ["--version"])
    other = make_script(tmp_path, f'{HELLO}; read line; printf \'{{"id": 1, "code": 42}}\\n\'; cat')
    moved = structs.replace(node, host=structs.replace(node.host, sm=other))
    assert ask(moved, ["--version"]).code == 42
