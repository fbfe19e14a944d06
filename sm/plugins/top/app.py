"""The program: what is on the screen, what each key does, and when something is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input
from textual.worker import WorkerFailed

from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.cli import attach
from sm.plugins.top import acts, lines
from sm.plugins.top.acts import Act, Plan
from sm.plugins.top.feed import LOOK_S, Feed, Seen
from sm.plugins.top.help_text import HELP
from sm.plugins.top.lines import Glyphs, Line, Look
from sm.plugins.top.listing import Listing, make_entries
from sm.plugins.top.story import Nearby, draw_nearby, draw_peek, measure_log, read_nearby
from sm.plugins.top.widgets import BoardList, Prompt, Sheet
from sm.sessions import registry
from sm.views.polling import START

AGES_S = 1.0
"""Between two looks at what has become older."""


class Page(Enum):
    """What fills the screen."""

    LIST = auto()
    SESSION = auto()
    HELP = auto()


class Ask(Enum):
    """What the panel at the bottom is for."""

    NOTHING = auto()
    ACT = auto()
    FIND = auto()


class Top(App[None]):
    """All sessions, and one of them from near."""

    CSS = """
    Lined, Sheet, BoardList { width: 1fr; height: 1; background: ansi_default; }
    #list, #session, #help { height: 1fr; }
    #notice, #peek, #say { display: none; }
    #detail { height: 2; }
    Prompt, Prompt:focus { display: none; height: 1; border: none; padding: 0;
        background: ansi_default; color: ansi_default; background-tint: ansi_default 0%; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True, show=False)]

    def __init__(self, feed: Feed, glyphs: Glyphs, *, colours: bool = True) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours, also on a light ground
        if not colours and not self.no_color:
            from textual.filter import NoColor

            self.no_color = True
            self._filters.append(NoColor())
        self.feed = feed
        self.root = feed.root
        self.listing = Listing()
        self.glyphs = glyphs
        self.seen = Seen()
        self.page = Page.LIST
        self.ask = Ask.NOTHING
        self.plan: Plan | None = None
        self.near: Nearby | None = None
        self.drafts: dict[str, str] = {}
        self._message: Line = ()
        self._found_from = ""
        self._sought = ""
        self._reading = False
        self._reading_near = False
        self._log_size = -1
        self._aged_at = 0.0
        self._is_read = False
        self._peeked = 0

    # The parts of the screen

    def compose(self) -> ComposeResult:
        """The parts from top to bottom; which of them are seen depends on the room."""
        yield Sheet("summary")
        yield Sheet("notice")
        yield BoardList("list", self.listing, self.glyphs)
        yield Sheet("session")
        yield Sheet("help")
        yield Sheet("say")
        yield Sheet("peek")
        yield Prompt("prompt")
        yield Sheet("detail")
        yield Sheet("keys")

    def sheet(self, name: str) -> Sheet:
        """The part of that name."""
        return self.query_one(f"#{name}", Sheet)

    @property
    def list_part(self) -> BoardList:
        """The list."""
        return self.query_one(BoardList)

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one(Prompt)

    @property
    def look(self) -> Look:
        """What lines are drawn for now."""
        return Look(time.time(), self.glyphs)

    def on_mount(self) -> None:
        """Begin to read."""
        self.sheet("help").show([((line, ""),) for line in HELP.split("\n")])
        self._arrange_parts()
        self._tick()
        self.set_interval(LOOK_S, self._tick)

    def on_resize(self) -> None:
        """Show as much as there is room for."""
        self._arrange_parts()

    def _arrange_parts(self) -> None:
        """Give each part its room; the list comes before what only explains it."""
        height, is_asking = self.size.height, self.ask is not Ask.NOTHING
        is_act = self.ask is Ask.ACT
        peeks = is_act and bool(self.plan is None or self.plan.act.takes_text)
        room = max(0, min(height // 2, height - 6)) if peeks else 0
        # It grows with what is there to be seen, and never shrinks below it: nothing jumps.
        self._peeked = max(self._peeked, len(self._draw_peek(room))) if room else 0
        room = min(room, self._peeked)
        self.sheet("summary").display = height >= 4
        notice = self._find_notice()
        self.sheet("notice").display = bool(notice) and height >= 10
        self.list_part.display = self.page is Page.LIST
        self.sheet("session").display = self.page is Page.SESSION
        self.sheet("help").display = self.page is Page.HELP
        self.sheet("say").display = is_asking
        self.sheet("peek").display = room > 0
        self.sheet("peek").styles.height = room
        types = self.ask is Ask.FIND or (is_act and bool(self.plan and self.plan.act.takes_text))
        self.prompt.styles.display = "block" if types else "none"
        self.sheet("detail").display = height >= 14 and self.page is Page.LIST and not is_asking
        self.sheet("keys").display = height >= 6 or bool(self._message)
        self.call_after_refresh(self.draw)

    def _find_notice(self) -> Line:
        """What holds everything up, and what cannot be read."""
        named = {need.project for need in self.seen.needs if need.kind is NeedKind.POLL}
        problems = (
            one
            for one in self.seen.problems
            if not (one.endswith(START) and one.partition(":")[0] in named)  # which has a line
        )
        told = [*self.seen.paused, *problems]
        if not told:
            return ()
        more = f"  (and {len(told) - 1} more: sm status)" if len(told) > 1 else ""
        return ((lines.plain(told[0]), "yellow"), (more, lines.DIM))

    def draw(self) -> None:
        """Draw all that has changed."""
        width, height = self.size
        listing = self.listing
        if self._is_read:
            summary = lines.draw_summary(
                listing.entries, only_needs=listing.only_needs, is_arranged=listing.is_arranged
            )
        else:
            summary = (("sm top  ", lines.HEAD), ("reading …", lines.DIM))
        self.sheet("summary").show([summary])
        self.sheet("notice").show([self._find_notice()])
        if self.page is Page.LIST:
            self.list_part.take(self.look.now)
        self.sheet("detail").show(lines.draw_detail(listing.current, self.look))
        if self.page is Page.SESSION and (entry := listing.current):
            self.sheet("session").show(draw_nearby(entry, self.near, width, height, self.look))
        self._draw_panel()
        self.sheet("keys").show([self._message or lines.draw_keys(self._keys, width)])

    @property
    def _keys(self) -> tuple[tuple[str, str], ...]:
        if self.ask is not Ask.NOTHING:
            return lines.PANEL
        return lines.KEYS if self.page is Page.LIST else lines.BACK

    def _draw_panel(self) -> None:
        if self.ask is Ask.FIND:
            self.sheet("say").show(
                [
                    lines.draw_rule(
                        "find: then n for the next one, N for the one before",
                        self.size.width,
                        self.glyphs,
                    )
                ]
            )
        if self.ask is not Ask.ACT:
            return
        entry, peek = self.listing.current, self.sheet("peek")
        says = self.plan.says if self.plan else (entry.name if entry else "")
        line = lines.draw_rule(says, self.size.width, self.glyphs)
        self.sheet("say").show([((line[0][0], "bold"),)])
        peek.show(self._draw_peek(peek.size.height))

    def _draw_peek(self, height: int) -> list[Line]:
        entry = self.listing.current
        near = self.near if entry and self.near and self.near.key == entry.key else None
        return draw_peek(entry, near, self.size.width, height) if entry else []

    def tell(self, text: str, style: str = "bold") -> None:
        """Say something in the last line, until the next key."""
        self._message = ((lines.plain(text), style),)
        self._arrange_parts()

    # What is read

    def _tick(self) -> None:
        """Have read what has changed, and draw what has become older."""
        now = time.monotonic()
        if not self._reading and self.feed.is_due():
            self._reading = True
            self.run_worker(self._read, thread=True, group="feed")
        if self.near and not self._reading_near and measure_log(self.near) != self._log_size:
            self._read_near()
        if now >= self._aged_at:
            self._aged_at = now + AGES_S
            self.draw()

    def _read(self) -> None:
        """In a thread: read what has changed."""
        try:
            seen = self.feed.read()
        except (SmError, OSError, ValueError) as error:
            why = error.message if isinstance(error, SmError) else str(error)
            self.call_from_thread(self._fail, why)
        else:
            self.call_from_thread(self._take, seen)

    def _fail(self, why: str) -> None:
        self._reading = False
        self.tell(f"cannot be read: {why}", "bold red")

    def _take(self, seen: Seen) -> None:
        self._reading = False
        self.seen = seen
        entries = make_entries(seen.rows, seen.needs)
        self.listing.update(entries, self.feed.find_outcome)
        if not self._is_read:
            self._is_read = True
            self.listing.arrange()
        if self.near and self.near.key in seen.changed:
            self._read_near()
        self._arrange_parts()

    def _read_near(self) -> None:
        """Have the session read that is looked at from near."""
        entry = self.listing.current
        if entry is None or entry.row is None or self._reading_near:
            return
        self._reading_near = True
        name, is_peek = entry.row.id, self.page is not Page.SESSION

        def read() -> None:
            self.call_from_thread(self._take_near, read_nearby(self.root, name, is_peek=is_peek))

        self.run_worker(read, thread=True, group="near")

    def _take_near(self, near: Nearby) -> None:
        self._reading_near = False
        entry = self.listing.current
        if not self._looks_near or entry is None:
            self.near = None
        elif entry.key != near.key or (near.is_peek and self.page is Page.SESSION):
            self.near = None
            self._read_near()
        else:
            self.near, self._log_size = near, measure_log(near)
        self.draw()

    @property
    def _looks_near(self) -> bool:
        return self.page is Page.SESSION or self.ask is Ask.ACT

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Do what the key says; what is typed into the prompt does not come here."""
        self._message = ()
        key = event.character if event.is_printable and event.character else event.key
        if self.page is Page.HELP:
            self._help_key(key)
        elif self.ask is not Ask.NOTHING:
            deeds = PANEL_KEYS
            if key in deeds:
                deeds[key](self)
        elif key in (deeds := SESSION_KEYS if self.page is Page.SESSION else LIST_KEYS):
            deeds[key](self)
        self._arrange_parts()

    def _help_key(self, key: str) -> None:
        moves = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": 10, "pageup": -10, " ": 10}
        if key in moves:
            self.sheet("help").scroll_lines(moves[key])
        else:
            self.page = self._before_help

    def move(self, by: int) -> None:
        """Select another entry."""
        self.listing.move(by)
        if self.ask is Ask.ACT:
            self.keep_draft()
            self.open_panel(self.plan.act if self.plan and self._is_named else None)

    def turn_page(self, by: int) -> None:
        """Select an entry that is a page further."""
        self.move(by * self.list_part.page)

    def scroll_session(self, by: int) -> None:
        """Show what is further down of the session."""
        self.sheet("session").scroll_lines(by)

    def switch_needs(self) -> None:
        """Show what needs me alone, or all."""
        self.listing.switch_needs()

    def arrange(self) -> None:
        """Have the list in order again."""
        self.listing.arrange()

    def leave(self) -> None:
        """End the program."""
        self.exit()

    def open_session(self) -> None:
        """Show the selected session from near."""
        entry = self.listing.current
        if entry is None or entry.row is None:
            self.peek()
            return
        self.page, self.near = Page.SESSION, None
        self.sheet("session").top = 0
        self._read_near()

    def close_session(self) -> None:
        """Go back to the list."""
        self.page, self.near = Page.LIST, None

    def help(self) -> None:
        """Show what each key does."""
        self._before_help, self.page = self.page, Page.HELP

    _before_help = Page.LIST

    # The panel

    _is_named = False
    """Whether the person has said which act it is; else it follows from what the entry needs."""

    def peek(self) -> None:
        """Show the last words, and take an answer."""
        self.open_panel(None)

    def open_panel(self, act: Act | None) -> None:
        """Ask for what the act needs; without one it is what the entry needs."""
        entry = self.listing.current
        if entry is None:
            return
        self._is_named = act is not None
        try:
            self.plan = acts.plan(self.root, act or acts.choose_answer(entry), entry)
        except SmError as error:
            self.plan = None
            if act:
                self.tell(error.message, "bold yellow")
                self.close_panel()
                return
        self.ask = Ask.ACT
        if self.near and self.near.key != entry.key:
            self.near = None
        if self.near is None:
            self._read_near()
        if self.plan and self.plan.act.takes_text:
            self.prompt.value = self.drafts.pop(self.plan.session, "")
            self.prompt.cursor_position = len(self.prompt.value)
            self.prompt.styles.display = "block"
            self.prompt.focus()
        else:
            self.set_focus(None)

    def keep_draft(self) -> None:
        """Keep what was typed for the next time."""
        if self.plan and self.plan.act.takes_text and self.prompt.value.strip():
            self.drafts[self.plan.session] = self.prompt.value

    def close_panel(self) -> None:
        """Leave the panel; nothing is done."""
        if self.ask is Ask.ACT:
            self.keep_draft()
        elif self.ask is Ask.FIND and self._found_from:
            self.listing.selected = self._found_from
        self._end_panel()

    def _end_panel(self) -> None:
        self.ask, self.plan = Ask.NOTHING, None
        self.set_focus(None)
        self.prompt.value = ""
        if self.page is not Page.SESSION:
            self.near = None

    def confirm(self) -> None:
        """Do what the panel asks for."""
        if self.ask is Ask.ACT and self.plan and not self.plan.act.takes_text:
            plan = self.plan
            self._end_panel()
            self._carry_out(plan, "")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        event.stop()
        self._message = ()
        if self.ask is Ask.FIND:
            self._found_from = ""
            self._end_panel()
        elif self.plan and self.prompt.text.strip():
            plan, text = self.plan, self.prompt.text
            self._end_panel()
            self._carry_out(plan, text)
        self._arrange_parts()

    def _carry_out(self, plan: Plan, text: str) -> None:
        """Do it in a thread, and say what came of it."""
        self.tell(f"{plan.says.partition(':')[0].partition('?')[0]} …", lines.DIM)

        def work() -> None:
            try:
                told = " ".join(acts.carry_out(self.root, plan, text))
            except SmError as error:
                self.call_from_thread(self._refuse, plan, text, error.message)
            else:
                self.call_from_thread(self.tell, told, "bold green")

        self.run_worker(work, thread=True, group="acts")

    def _refuse(self, plan: Plan, text: str, why: str) -> None:
        """Say why it was not done, and keep what was typed."""
        if text:
            self.drafts.setdefault(plan.session, text.replace("\n", "⏎"))
        self.tell(f"not done: {why}", "bold red")

    def find(self) -> None:
        """Ask for words that the wanted entry has."""
        self.ask, self._found_from = Ask.FIND, self.listing.selected
        self.prompt.value = ""
        self.prompt.styles.display = "block"
        self.prompt.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Select the first entry that has what is typed so far."""
        event.stop()
        if self.ask is not Ask.FIND:
            return
        self.listing.selected = self._found_from
        self._sought = event.value
        if event.value and not self.listing.find(event.value, here=True):
            self.tell(f"nothing has '{event.value}'", "bold yellow")
        else:
            self._message = ()
        self._arrange_parts()

    def find_again(self, step: int) -> None:
        """Select the next entry that has these words."""
        if not self._sought:
            self.find()
        elif not self.listing.find(self._sought, step=step):
            self.tell(f"nothing has '{self._sought}'", "bold yellow")

    def attach(self) -> None:
        """Show the session's terminal; this program waits meanwhile."""
        entry = self.listing.current
        if entry is None or entry.row is None:
            self.tell("that is no session: nothing to attach to", "bold yellow")
            return
        try:
            way = attach.find_way(registry.load(self.root, entry.row.id))
            with self.suspend():
                attach.enter(way)
        except SmError as error:
            self.tell(f"not done: {error.message}", "bold red")
        self.refresh()

    def _fatal_error(self) -> None:
        # Overridden: textual would print a traceback with all that is known of it. Whoever has run
        # this raises what went wrong, as every command does.
        self._close_messages_no_wait()

    @property
    def error(self) -> Exception | None:
        """What has ended the program, if it was not the person."""
        found = self._exception
        return found.error if isinstance(found, WorkerFailed) else found  # type: ignore[return-value]


Deed = Callable[[Top], object]


def _also(deed: Deed, keys: Iterable[str]) -> dict[str, Deed]:
    return dict.fromkeys(keys, deed)


ACTS: dict[str, Deed] = {
    " ": Top.peek,
    "r": lambda top: top.open_panel(Act.REPLY),
    "s": lambda top: top.open_panel(Act.SEND),
    "p": lambda top: top.open_panel(Act.PAUSE),
    "a": Top.attach,
    "?": Top.help,
    "q": Top.leave,
}
LIST_KEYS: dict[str, Deed] = {
    **ACTS,
    **_also(lambda top: top.move(1), ("j", "down")),
    **_also(lambda top: top.move(-1), ("k", "up")),
    **_also(lambda top: top.turn_page(1), ("pagedown", "ctrl+f", "ctrl+d")),
    **_also(lambda top: top.turn_page(-1), ("pageup", "ctrl+b", "ctrl+u")),
    **_also(lambda top: top.move(-(10**9)), ("g", "home")),
    **_also(lambda top: top.move(10**9), ("G", "end")),
    "enter": Top.open_session,
    "!": Top.switch_needs,
    "o": Top.arrange,
    "/": Top.find,
    "n": lambda top: top.find_again(1),
    "N": lambda top: top.find_again(-1),
}
SESSION_KEYS: dict[str, Deed] = {
    **ACTS,
    **_also(lambda top: top.scroll_session(1), ("j", "down")),
    **_also(lambda top: top.scroll_session(-1), ("k", "up")),
    **_also(lambda top: top.scroll_session(top.size.height // 2), ("pagedown", "ctrl+f", "ctrl+d")),
    **_also(
        lambda top: top.scroll_session(-(top.size.height // 2)), ("pageup", "ctrl+b", "ctrl+u")
    ),
    **_also(lambda top: top.scroll_session(-(10**9)), ("g", "home")),
    **_also(lambda top: top.scroll_session(10**9), ("G", "end")),
    **_also(Top.close_session, ("escape", "enter", "backspace", "left")),
}
PANEL_KEYS: dict[str, Deed] = {
    "escape": Top.close_panel,
    "enter": Top.confirm,
    "down": lambda top: top.move(1),
    "up": lambda top: top.move(-1),
    "q": Top.close_panel,
    "n": Top.close_panel,
    "y": Top.confirm,
}
