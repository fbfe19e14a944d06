"""Texts for an agent about a thread on its issue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from sm.base.phase import Phase
from sm.base.quotation import CHAT, fence, first_part


def write_entry(ident: str, seq: int, type_: str, content: str, nonce: str) -> str:
    """Write an entry of the chat as a message to the agent that works on the issue."""
    quoted = fence("entry", first_part(content, f"sm bridge get {quote(ident)}"), nonce, CHAT)
    head = f"[sm] {type_} from the chat (handoff {ident}, entry {seq}):"
    return f"{head}\n{quoted}\n\n{write_report(ident)}"


def write_note(idents: Sequence[str]) -> str:
    """Write which threads are about the agent's issue, and how to use them; '' for none."""
    if not idents:
        return ""
    which = f"handoff {idents[0]}" if len(idents) == 1 else f"the handoffs {', '.join(idents)}"
    return (
        f"A person follows this issue in a chat, through {which} (all of it: sm bridge get "
        f"{quote(idents[-1])}). What the chat adds reaches you as a message; what an agent before "
        f"you was told stands there. {write_report(idents[-1])} What you cannot go on without, ask "
        f"by {Phase.ESCALATE}: it is asked in the chat as well."
    )


def write_report(ident: str) -> str:
    """Write how the agent reaches the chat."""
    return (
        f"Tell the chat how it goes: sm bridge add {quote(ident)} progress 'TEXT' (or question, or "
        "done; '-' reads TEXT from standard input), or by the tool add_to_handoff with "
        'as_client: "code".'
    )
