"""Parts of the screen, how much room each has, and what they show."""

from __future__ import annotations

import time
from enum import Enum, auto
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from sm.base.act import ActKind
from sm.plugins.top import acts, lines
from sm.plugins.top.acts import OF_PULL, ActPlan, ShownChange
from sm.plugins.top.feed import Feed, Seen
from sm.plugins.top.lines import Glyphs, Line, Look
from sm.plugins.top.listing import Listing
from sm.plugins.top.story import Nearby, draw_change, draw_nearby, draw_peek
from sm.plugins.top.widgets import BoardList, PromptLine, Sheet

HELP = """\
Keys

  j k, arrows       select another session        Enter  open it: story, messages, terminal
  PgUp PgDn, g G    a page, the first, the last   Esc    back
  !                 only what needs you, or all   /      select what has these words; n, N
  o                 arrange the list anew         q      quit

  Space  peek at the last words, and answer right there
  r      reply to a question: the agent gets it as a message, the issue as a comment
  s      send a message: the agent gets it at the end of its turn
  a      attach: enter the terminal; the tmux prefix and d come back
  p      pause a session, or let it go on
  A C    approve a pull request that waits for a review, or request changes:
         what it changes is shown first, PgUp and PgDn turn its pages
  M      merge one that waits for a person
  B      raise the limit that keeps a session or a project

Nothing moves by itself: what is new comes to the end of the list, what is over stays where it
was. o puts first again what needs you.

Columns

  !      a person is needed; the sentence and the command stand in its line
  Way    work, CI, review, merge: done, at it, turned back, not there yet
  For    since when it is in this state
  Tries  f: fixes after a CI failure, r: review rounds, x: restarts
  Ctx    how full its context is

docs/TOP.md tells more."""
"""Text that `?` shows."""


class TopPage(Enum):
    """Page that fills the screen."""

    LIST = auto()
    SESSION = auto()
    HELP = auto()


class Ask(Enum):
    """Purpose of the panel at the bottom."""

    NOTHING = auto()
    ACT = auto()
    FIND = auto()


PEEKED = frozenset(ActKind) - {ActKind.PAUSE, ActKind.RESUME}
"""Acts that a person should do only with the last words in view."""


class View(App[None]):
    """All sessions, or one of them from near, and the panel in which a person is asked.

    `plan` is what the panel will do, None if it only shows something. `near` has the details of the
    session that is seen from near, and `change` the pull request's change that is to be decided
    about.
    """

    CSS = """
    Lined, Sheet, BoardList { width: 1fr; height: 1; background: ansi_default; }
    #list, #session, #help { height: 1fr; }
    #session, #help, #notice, #peek, #say { display: none; }
    Prompt, Prompt:focus { display: none; height: 1; border: none; padding: 0;
        background: ansi_default; color: ansi_default; background-tint: ansi_default 0%; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True, show=False)]

    def __init__(
        self, feed: Feed, glyphs: Glyphs, *, colours: bool = True, seen: Seen | None = None
    ) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours, also on a light ground
        if not colours and not self.no_color:
            from textual.filter import NoColor

            self.no_color = True
            self._filters.append(NoColor())
        self.feed = feed
        self.root = feed.root
        self.glyphs = glyphs
        self.listing = Listing()
        self.seen = seen
        self.page = TopPage.LIST
        self.ask = Ask.NOTHING
        self.plan: ActPlan | None = None
        self.near: Nearby | None = None
        self.change: ShownChange | None = None
        self.message: Line = ()
        self.peeked = 0
        self._rooms: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """Yield the parts from top to bottom; the room decides which of them are seen."""
        yield Sheet("summary")
        yield Sheet("notice")
        yield BoardList("list", self.listing, self.glyphs)
        yield Sheet("session")
        yield Sheet("help", [((line, ""),) for line in HELP.split("\n")])
        yield Sheet("say")
        yield Sheet("peek")
        yield PromptLine("prompt")
        yield Sheet("detail")
        yield Sheet("keys")

    def sheet(self, name: str) -> Sheet:
        """Return the part of that name."""
        return self.query_one(f"#{name}", Sheet)

    @property
    def list_part(self) -> BoardList:
        """Part with the list."""
        return self.query_one(BoardList)

    @property
    def prompt(self) -> PromptLine:
        """Line to type in."""
        return self.query_one(PromptLine)

    @property
    def look(self) -> Look:
        """Moment and marks that lines are drawn with now."""
        return Look(time.time(), self.glyphs)

    def on_resize(self) -> None:
        """Show as much as there is room for."""
        self.show_all()

    def show_all(self) -> None:
        """Give each part its room, and draw; the list goes before what only explains it."""
        rooms = self._find_rooms()
        if rooms == self._rooms:
            self.draw()
            return
        self._rooms = rooms
        for name, room in rooms.items():
            part = self.query_one(f"#{name}")
            part.styles.display = "block" if room else "none"
            if room > 0:
                part.styles.height = room
        self.call_after_refresh(self.draw)

    def _find_rooms(self) -> dict[str, int]:
        """Count the lines of each part; -1 for what is left, 0 for nothing."""
        height, page = self.size.height, self.page
        is_asking, is_act = self.ask is not Ask.NOTHING, self.ask is Ask.ACT
        types = self.ask is Ask.FIND or (is_act and bool(self.plan and self.plan.asks))
        has_detail = height >= lines.DETAIL_FROM and page is TopPage.LIST and not is_asking
        return {
            "summary": int(height >= lines.SUMMARY_FROM),
            "notice": int(height >= lines.NOTICE_FROM and bool(self._find_notice())),
            "list": -int(page is TopPage.LIST),
            "session": -int(page is TopPage.SESSION),
            "help": -int(page is TopPage.HELP),
            "say": min(len(self._draw_says()), max(1, height // 3)) if is_asking else 0,
            "peek": self._find_peek_room() if is_act else 0,
            "prompt": int(types),
            "detail": 2 * has_detail,
            "keys": int(height >= lines.KEYS_FROM or bool(self.message)),
        }

    def _find_peek_room(self) -> int:
        """Return the room of the peek: it grows with what there is to see, and never shrinks."""
        height = self.size.height
        peeks = self.plan is None or self.plan.kind in PEEKED
        room = max(0, min(height // 2, height - 6)) if peeks else 0
        self.peeked = max(self.peeked, len(self._draw_peek(room))) if room else 0
        return min(room, self.peeked)

    def _find_notice(self) -> Line:
        """Draw what holds everything up, and what cannot be read."""
        seen = self.seen
        return lines.draw_notice(seen.needs, seen.paused, seen.problems) if seen else ()

    def draw(self) -> None:
        """Draw all that has changed."""
        width, height = self.size
        listing = self.listing
        if self.seen:
            summary = lines.draw_summary(
                listing.entries, only_needs=listing.only_needs, is_arranged=listing.is_arranged
            )
        else:
            summary = (("sm top  ", lines.HEAD), ("reading …", lines.DIM))
        self.sheet("summary").show([summary])
        self.sheet("notice").show([self._find_notice()])
        if self.page is TopPage.LIST:
            self.list_part.take(self.look.now)
        self.sheet("detail").show(lines.draw_detail(listing.current, self.look))
        if self.page is TopPage.SESSION and (entry := listing.current):
            self.sheet("session").show(draw_nearby(entry, self.near, width, height, self.look))
        self._draw_panel()
        self.sheet("keys").show([self.message or lines.draw_keys(self._keys, width)])

    @property
    def _keys(self) -> tuple[tuple[str, str], ...]:
        entry = self.listing.current
        merges = bool(entry and entry.need and entry.need.merges)
        named = lines.WAYS | ({"A": "approve and merge"} if merges else {})
        ways = tuple((key, named[key]) for key in acts.list_keys(entry))
        if self.ask is not Ask.NOTHING:
            return lines.PANEL if self.plan or self.ask is Ask.FIND else (*ways, *lines.PANEL[1:])
        return (*ways, *(lines.KEYS if self.page is TopPage.LIST else lines.BACK))

    def _draw_panel(self) -> None:
        if self.ask is Ask.NOTHING:
            return
        if self.ask is Ask.ACT:
            peek = self.sheet("peek")
            peek.show(self._draw_peek(peek.size.height))
        self.sheet("say").show(self._draw_says())

    def _draw_says(self) -> list[Line]:
        """Draw what will be done, all of it also on a narrow terminal."""
        entry, width = self.listing.current, self.size.width
        if self.ask is Ask.FIND:
            says = "find: then n for the next one, N for the one before"
        else:
            says = self.plan.says if self.plan else (entry.name if entry else "")
        first, *more = lines.wrap(lines.plain(says), width - 4)
        rule = lines.draw_rule(first, width, self.glyphs, lines.HEAD)
        return [rule, *(((f"   {line}", lines.HEAD),) for line in more)]

    def _draw_peek(self, height: int) -> list[Line]:
        entry = self.listing.current
        if entry and self.plan and self.plan.kind in OF_PULL:
            return draw_change(self.change, self.size.width)
        near = self.near if entry and self.near and self.near.key == entry.key else None
        return draw_peek(entry, near, self.size.width, height) if entry else []

    def tell(self, text: str, style: str = "bold") -> None:
        """Say something in the last line, until the next key."""
        self.message = ((lines.plain(text), style),)
        self.show_all()
