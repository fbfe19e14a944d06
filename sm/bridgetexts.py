"""What an agent is told of a handoff that is about its issue. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sm.material import CHAT, fence, first_part
from sm.phase import Phase


def entry(ident: str, seq: int, type_: str, content: str, nonce: str) -> str:
    """An entry of the chat, as a message to the agent at work on the issue."""
    quoted = fence("entry", first_part(content, f"sm bridge get {ident}"), nonce, CHAT)
    return (
        f"[sm] {type_} from the chat (handoff {ident}, entry {seq}):\n{quoted}\n\n{report(ident)}"
    )


def note(idents: Sequence[str]) -> str:
    """For the agent's prompt: the handoffs about its issue, and how to use them; '' for none."""
    if not idents:
        return ""
    which = f"handoff {idents[0]}" if len(idents) == 1 else f"the handoffs {', '.join(idents)}"
    return (
        f"A person follows this issue in a chat, through {which} (all of it: sm bridge get "
        f"{idents[-1]}). What the chat adds reaches you as a message; what an agent before you was "
        f"told stands there. {report(idents[-1])} What you cannot go on without, ask by "
        f"{Phase.ESCALATE}: it is asked in the chat as well."
    )


def report(ident: str) -> str:
    """How the agent reaches the chat."""
    return (
        f"Tell the chat how it goes: sm bridge add {ident} progress 'TEXT' (or question, or done; "
        "'-' reads TEXT from standard input), or by the tool add_to_handoff with "
        'as_client: "code".'
    )
