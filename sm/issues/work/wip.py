"""Work in progress of a session that was placed here, kept on the remote for a successor.

At each turn's end, and within one after a commit, the worktree, as it is, and what `sm` knows of
the session are pushed to `refs/sm/wip/ISSUE/ATTEMPT`: a commit of the state, whose parent is a
commit of the worktree, whose parent is the branch. A later attempt begins from there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.git_push import ABSENT, RefMovedError, Update
from sm.adapters.git_snapshot import Taken, commit_tree, put_back, take
from sm.base.errors import SmError, StateError, TemporaryError
from sm.base.foreign import NUMBER_LIMIT, read_number
from sm.base.issue_id import IssueId
from sm.base.redact import redact
from sm.context import documents, rotation_files
from sm.issues.look import phase_file
from sm.issues.work.claim import LOOKS, name_wip
from sm.sessions import agent, agent_state
from sm.sessions.agent_state import State
from sm.sessions.fence import name_claim
from sm.sessions.history import GIVEN_BACK, KILLED, OVERTAKEN, Receipt, StepVerb
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point
from sm.store.files import decode_json, open_guarded, read_guarded, read_harmless, write_atomic
from sm.store.paths import SessionDir

ABOUT, PHASE, RECEIPTS, HANDOFF = "about.json", "phase", "receipts.jsonl", "handoff.md"
CARRIED = ("issue", "reviews", "pull_comments")
"""Other files of a session's directory that are carried: the texts as its agent knows them."""
DONE, BEGUN = "sm-taken-up", "sm-taking-up"
"""Files in the worktree's own git directory: an earlier attempt's work is in it, or partly so."""
BROUGHT = "handoff-of-the-last-attempt.md"
"""Name among the handoffs in an agent's folder that no request has."""
NOT_CARRIED = (StepVerb.START, StepVerb.RECOVER)
ENDINGS = (KILLED, GIVEN_BACK, OVERTAKEN)


class WipRecord(Struct, frozen=True):
    """Data pushed beside the files: whose it is, and the states of git and the phase file."""

    attempt: int
    taken: Taken
    phase_id: str = ""
    phase_at_ns: int = 0


class WipPush(Struct, frozen=True):
    """Last push: its commit, its turn, and the agent's last commit by then."""

    commit: str = ""
    turn: str = ""
    head: str = ""


class SavedWork(Struct, frozen=True):
    """Work that an earlier attempt, or this one, has left on the remote."""

    ref: str
    commit: str
    about: WipRecord


def list_refs(git: Git, remote: str, issue: IssueId) -> dict[str, str]:
    """Return what the remote has of all attempts: ref to commit."""
    return git.ls_remote(remote, name_wip(issue, "*"))


def give_up(git: Git, remote: str, issue: IssueId, claim: str) -> bool:
    """Give up the claim at that commit, with what is kept of all attempts; False: it is another.

    One push does it: once the claim is gone, a session may do nothing more.
    """
    held = name_claim(issue)
    for _ in range(LOOKS):
        refs = git.ls_remote(remote, held, name_wip(issue, "*"))
        if refs.get(held, claim) != claim:
            return False
        if not refs:
            return True
        try:
            git.push(remote, *(Update(ref, "", commit) for ref, commit in refs.items()))
        except RefMovedError:
            continue  # something of an earlier attempt has just come, or others were faster
        return True
    raise TemporaryError(f"what is kept of issue {issue} keeps changing on the remote: try again")


# Saving


def save_if_due(session: IssueSession) -> bool:
    """Push the work if a turn has ended since the last push, and something has changed.

    Within a turn, which may be the whole issue, push it if the agent has committed something since.

    Raises:
        OvertakenError: another attempt has the issue.
        SmError: it cannot be pushed now.

    """
    saved = read_saved(session.dir)
    if is_in_turn(session):
        record, head = session.record, _read_head(session)
        branch = f"refs/remotes/{record.remote}/{record.branch}"
        if head in ("", saved.head or session.project.git.rev_parse(branch)):
            return False
        return save(session, turn=saved.turn)
    turn = _name_turn(session)
    if not turn or turn == saved.turn:
        return False
    return save(session, turn=turn)


def is_in_turn(session: IssueSession) -> bool:
    """Whether a turn of its agent is under way, as far as hooks tell."""
    if not session.profile.hooks or agent.load(session.dir) is None:
        return False
    return agent_state.read(session.dir).state is State.BUSY


def _read_head(session: IssueSession) -> str:
    """Return the last commit in the worktree; '' if that is gone."""
    if not (session.worktree / ".git").exists():
        return ""
    return session.project.git.at(session.worktree).rev_parse("HEAD") or ""


def _name_turn(session: IssueSession) -> str:
    """Return an id of the agent's last turn; '' while one is under way, or none was."""
    if agent.load(session.dir) is None:
        return ""
    told = agent_state.read(session.dir)
    if session.profile.hooks and told.state in (State.BUSY, State.STARTING):
        return ""
    phase = session.root.phase(session.record.project, session.issue)
    marks = (_stamp(session.root.idle_marker(session.name)), _stamp(phase))
    return f"{told.since:.3f} {marks[0]} {marks[1]} {_stamp(session.dir.receipts)}"


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def save(session: IssueSession, *, turn: str = "") -> bool:
    """Push the work as it is now; False if the remote has it already."""
    project, record = session.project, session.record
    if not (head := _read_head(session)):
        return False
    taken = take(project.git.at(session.worktree), record.branch)
    if taken is None:
        return False
    git, ref = project.git, name_wip(record.issue, record.attempt)
    commit = _commit_state(session, git, taken)
    last = read_saved(session.dir).commit
    if commit != last:
        crash_point("wip:before-push")
        _push(session, git, ref, commit, last)
        crash_point("wip:after-push")
    write_atomic(session.dir.wip, msgspec.json.encode(WipPush(commit, turn, head)))
    return commit != last


def read_saved(directory: SessionDir) -> WipPush:
    """Return the last push of this session."""
    try:
        data = read_guarded(directory.wip)
        return decode_json(data, WipPush, directory.wip) if data else WipPush()
    except StateError:
        return WipPush()


def _push(session: IssueSession, git: Git, ref: str, commit: str, last: str) -> None:
    remote = session.record.remote
    if last:
        try:
            git.push(remote, Update(ref, commit, last))
        except RefMovedError:  # the note of the last push was lost
            pass
        else:
            return
    there = list_refs(git, remote, session.issue)
    git.push(remote, Update(ref, commit, there.get(ref, ABSENT)))


def read_attempt(ref: str) -> int:
    """Return the number of the attempt whose work the ref has; 0 for none."""
    return read_number(ref.rpartition("/")[2]) or 0


def _commit_state(session: IssueSession, git: Git, taken: Taken) -> str:
    """Return the commit of the session's state, on top of that of its work."""
    files, phase = _list_state(session), _read_phase(session)
    about = WipRecord(session.attempt, taken, phase.id, phase.at_ns)
    files |= {ABOUT: msgspec.json.encode(about), PHASE: phase.content}
    blobs = {name: git.write_object("blob", data) for name, data in files.items()}
    rows = [f"100644 blob {sha}\t{name}\n" for name, sha in sorted(blobs.items())]
    tree = call(git.repo, "mktree", stdin="".join(rows).encode()).stdout.strip()
    return commit_tree(git, tree, (taken.commit,), f"State of attempt {session.attempt}")


def _list_state(session: IssueSession) -> dict[str, bytes]:
    """Return the session's files that a successor needs; secrets in them are made unreadable."""
    directory = session.dir
    paths = {RECEIPTS: directory.receipts, HANDOFF: directory.document}
    paths |= {f"{name}.json": getattr(directory, name) for name in CARRIED}
    found = {name: read_harmless(path) for name, path in paths.items() if path.exists()}
    return {name: redact(data.decode("utf-8", "replace")).encode() for name, data in found.items()}


class _Phase(Struct, frozen=True):
    content: bytes = b""
    id: str = ""
    at_ns: int = 0


def _read_phase(session: IssueSession) -> _Phase:
    path = session.root.phase(session.record.project, session.issue)
    try:
        write = phase_file.read(session.root, session.record.project, session.issue)
        with open_guarded(path, os.O_RDONLY) as fd:
            found = os.fstat(fd)
            content = os.pread(fd, phase_file.READ_LIMIT, 0)
    except (FileNotFoundError, StateError):
        return _Phase()
    return _Phase(content, write.id if write else "", found.st_mtime_ns)


# Going on from there


def find(git: Git, remote: str, issue: IssueId, *, up_to: int) -> SavedWork | None:
    """Fetch the newest work of the attempts up to that number; None if there is none.

    All with push rights can write it, so what cannot be read counts as none.
    """
    refs = list_refs(git, remote, issue)
    fitting = [ref for ref in refs if 0 < read_attempt(ref) <= up_to]
    for ref in sorted(fitting, key=read_attempt, reverse=True):
        git.fetch(remote, ref)
        try:
            about = decode_json(_read(git, refs[ref], ABOUT), WipRecord, Path(ref))
        except SmError:
            continue
        return SavedWork(ref, refs[ref], about)
    return None


def _read(git: Git, commit: str, name: str) -> bytes:
    return call(git.repo, "cat-file", "blob", f"{commit}:{name}").raw


def take_up(session: IssueSession) -> str:
    """Bring the work of an earlier attempt into the session's new worktree, and its state here.

    Returns what the agent has to know of it, '' if there is none. Can be repeated.
    """
    record, git = session.record, session.project.git
    tree = git.at(session.worktree)
    git_dir = tree.git_dir()
    if (git_dir / DONE).exists():
        return (read_guarded(git_dir / DONE) or b"").decode()
    found = find(git, record.remote, record.issue, up_to=record.attempt or NUMBER_LIMIT)
    told = ""
    if found:
        told = _put_back(tree, git_dir, found, record.branch)
        crash_point("wip:files-back")
        _restore_state(session, git, found)
        _bring_document(session)
        crash_point("wip:state-back")
    write_atomic(git_dir / DONE, told)
    return told


def _put_back(tree: Git, git_dir: Path, found: SavedWork, branch: str) -> str:
    taken = found.about.taken
    told = [f"Attempt {found.about.attempt} at this issue was cut off, and you go on from there."]
    if (git_dir / BEGUN).exists():  # by a start that was cut short; nobody has worked here since
        call(tree.repo, "reset", "--quiet", "--hard")
        call(tree.repo, "clean", "--quiet", "--force", "-d")
    elif tree.status():
        return f"Its last state is commit {taken.commit}; files of this worktree were left alone."
    (git_dir / BEGUN).touch(mode=0o600)
    if not tree.is_ancestor(taken.tip, "HEAD"):
        call(tree.repo, "reset", "--quiet", "--hard", taken.tip)
        told.append("Its branch had been rewritten: push yours with --force-with-lease.")
    is_simple = taken.unfinished in ("", "merge")  # else git was in the middle of more
    told += _tell_files(taken, fits=put_back(tree, taken) if is_simple else None)
    return " ".join(told)


def _tell_files(taken: Taken, *, fits: bool | None) -> list[str]:
    told = []
    if fits is None:
        told.append(
            f"It was in the middle of a {taken.unfinished}, which was not repeated: its files as "
            f"they were are in commit {taken.commit}."
        )
    elif taken.unfinished == "merge":
        told.append("It was in the middle of a merge, which goes on in this worktree.")
    if fits is False:
        told.append("What it had not committed conflicts with the branch: look for git's markers.")
    if taken.left_out:
        names = ", ".join(f"'{name}'" for name in taken.left_out[:10])
        told.append(f"Not brought along: {names}.")
    return told


def _restore_state(session: IssueSession, git: Git, found: SavedWork) -> None:
    """Write phase, receipts, texts and the last handoff as they were; the start is told again."""
    names = call(git.repo, "ls-tree", "--name-only", found.commit).lines
    files = {name: _read(git, found.commit, name) for name in names}
    ids = _restore_phase(session, files.get(PHASE, b""), found.about)
    lines = _select_receipts(files.get(RECEIPTS, b""), ids)
    directory = session.dir
    write_atomic(directory.receipts, b"".join(lines))
    if HANDOFF in files:
        write_atomic(directory.document, files[HANDOFF])
    for name in CARRIED:
        if data := files.get(f"{name}.json"):
            write_atomic(getattr(directory, name), data)


def _bring_document(session: IssueSession) -> None:
    """Put the last handoff where the agent may read it; its context begins with that."""
    text = read_guarded(session.dir.document)
    if not text:
        return
    try:
        folder = documents.find_folder(session, session.settings.cycle)
        documents.prepare(folder)
        path = folder / BROUGHT
        write_atomic(path, text)
    except SmError:  # an obstacle there is no reason to begin without it
        path = session.dir.document
    rotation_files.note_begun(session.dir, path, "", kept=True)


def _restore_phase(session: IssueSession, content: bytes, about: WipRecord) -> Mapping[str, str]:
    """Write the phase file; return the old id of that write, and its new one here."""
    if not about.phase_id:
        return {}
    root, project, issue = session.root, session.record.project, session.issue
    write_atomic(root.phase(project, issue), content, mtime_ns=about.phase_at_ns)
    write = phase_file.read(root, project, issue)
    return {about.phase_id: write.id} if write else {}


def _select_receipts(data: bytes, ids: Mapping[str, str]) -> list[bytes]:
    """Select the receipts that hold for a successor, with the ids that the writes have here."""
    kept = []
    for line in data.splitlines():
        try:
            receipt = decode_json(line, Receipt, Path(RECEIPTS))
        except StateError:
            continue
        if receipt.verb not in NOT_CARRIED and receipt.plan not in ENDINGS:
            for old, new in ids.items():
                line = line.replace(old.encode(), new.encode())
            kept.append(line + b"\n")
    return kept
