"""Tools as a model reads them: names, parameters, results, and when to use which."""

from __future__ import annotations

from typing import Any

from mcp.types import Tool, ToolAnnotations

from sm.plugins.chat.threads.arguments import CONTENT_LIMIT
from sm.plugins.chat.threads.records import EntryType, HandoffClient, HandoffStatus

Schema = dict[str, Any]

SHOWN_LIMIT = 200_000
"""Characters of a result that a model gets whole, about 50,000 tokens; new entries count twice."""

INSTRUCTIONS = """\
A handoff is a thread of entries that two clients share: the chat, where a person decides, and the \
coding client, which carries out. It is reached by its id alone (hof_…), which the person pastes \
from one client into the other; there is no list and no search, so always show a new id to the \
person, and ask for one that you do not have.

If you are a coding client (Claude Code, Codex, …), pass as_client: "code" in every call that \
takes it. Everybody else leaves it out.

When the person names a handoff: get_handoff, read new_entries, mark_handoff_read, then act on \
them. Tell the other side by add_to_handoff, and the person that there is something to read there. \
Where a handoff contradicts what the person tells you now, the person is right."""


def _object(properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required or properties),
        "additionalProperties": False,
    }


def _text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


ID_PARAMETER = _text("Id of the handoff, as create_handoff returned it")
CONTENT = {"minLength": 1, "maxLength": CONTENT_LIMIT}
AS_CLIENT = _text(
    'Who you are: "code" for a coding client such as Claude Code, which has to say so each time; '
    'every other client is "chat"',
    enum=list(HandoffClient),
    default=str(HandoffClient.CHAT),
)
TYPE_PARAMETER = _text(
    "context: background, requirements. task: work to be done. progress: how far it is. "
    "question: input is needed from the other side. decision: the answer to a question, a "
    "direction. done: work is finished. The chat mostly writes context, task and decision, the "
    "coding client progress, question and done",
    enum=list(EntryType),
)

HANDOFF = _object(
    {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "project": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "chat_last_seen": {"type": "integer", "description": "seq of the last entry seen by chat"},
        "code_last_seen": {"type": "integer", "description": "seq of the last entry seen by code"},
        "status": {"type": "string", "enum": list(HandoffStatus)},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
    }
)
ENTRY = _object(
    {
        "seq": {"type": "integer"},
        "handoff_id": {"type": "string"},
        "from_client": {"type": "string", "enum": list(HandoffClient)},
        "type": {"type": "string", "enum": list(EntryType)},
        "content": {"type": "string"},
        "created_at": {"type": "string", "format": "date-time"},
    }
)
ENTRIES = {"type": "array", "items": ENTRY}

ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)

TOOLS = (
    Tool(
        name="create_handoff",
        title="Create a handoff",
        description=(
            "Begin a handoff, when the person wants to pass work, decisions or context to the "
            "other client. 'content' becomes its first entry (type context): the other client "
            "knows nothing of this conversation, so write down all it needs, what was decided and "
            "why. Show the returned id to the person, who pastes it into the other client. With "
            "'project' and 'issue' the handoff is bound to an issue that sm works on: what the "
            "chat adds reaches the agent at work on it."
        ),
        input_schema=_object(
            {
                "title": _text("A few words that say what it is about", minLength=1),
                "content": _text("What the other client needs to know", **CONTENT),
                "project": _text(
                    "A tag, as the person calls the project; with 'issue', its name in sm"
                ),
                "issue": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Leave it out unless the person names an issue of the project",
                },
                "as_client": AS_CLIENT,
            },
            required=("title", "content"),
        ),
        output_schema=_object({"handoff": HANDOFF, "entries": ENTRIES}),
        annotations=ADDS,
    ),
    Tool(
        name="get_handoff",
        title="Read a handoff",
        description=(
            "Read a handoff: 'entries' is all of it in order, 'new_entries' what you have not seen "
            "yet. Call it when the person names an id, or says that the other side has answered. "
            "Reading changes nothing: call mark_handoff_read when you have taken it in. A "
            "completed handoff has no entries any more."
        ),
        input_schema=_object({"id": ID_PARAMETER, "as_client": AS_CLIENT}, required=("id",)),
        output_schema=_object(
            {
                "handoff": HANDOFF,
                "entries": ENTRIES,
                "new_entries": ENTRIES,
                "new_count": {"type": "integer"},
            }
        ),
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        # Without this, Claude Code puts a result of over 50,000 characters into a file (2.1.329).
        _meta={"anthropic/maxResultSizeChars": SHOWN_LIMIT},
    ),
    Tool(
        name="add_to_handoff",
        title="Add to a handoff",
        description=(
            "Append an entry for the other client to read: a task, progress, a question, a "
            "decision. It marks all entries before it as read by you, so call get_handoff first. "
            "Entries cannot be changed or taken back. Fails for a completed handoff."
        ),
        input_schema=_object(
            {
                "id": ID_PARAMETER,
                "type": TYPE_PARAMETER,
                "content": _text("What the other client is to read", **CONTENT),
                "as_client": AS_CLIENT,
            },
            required=("id", "type", "content"),
        ),
        output_schema=_object({"handoff": HANDOFF, "entry": ENTRY}),
        annotations=ADDS,
    ),
    Tool(
        name="mark_handoff_read",
        title="Mark a handoff as read",
        description=(
            "Note that you have seen every entry: get_handoff then has no new ones for you, until "
            "the other client writes again."
        ),
        input_schema=_object({"id": ID_PARAMETER, "as_client": AS_CLIENT}, required=("id",)),
        output_schema=_object({"handoff": HANDOFF}),
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    ),
    Tool(
        name="close_handoff",
        title="Close a handoff",
        description=(
            "End a handoff for both clients: its entries are deleted for good, read or not, and "
            "nothing can be added any more. Only when the person asks for it, or has agreed."
        ),
        input_schema=_object({"id": ID_PARAMETER}),
        output_schema=_object({"handoff": HANDOFF}),
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    ),
)
