"""Program of `sm top`: what each key does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textual import events
from textual.worker import WorkerFailed

from sm.base.act import ActKind
from sm.base.errors import SmError
from sm.plugins.top import lines
from sm.plugins.top.acts import KEYS, find_place
from sm.plugins.top.dialogs import Asking
from sm.plugins.top.view import Ask, TopPage

if TYPE_CHECKING:
    from sm.views.place import Place


class Top(Asking):
    """All sessions on one screen, seen and steered by keys."""

    _before_help = TopPage.LIST

    def on_key(self, event: events.Key) -> None:
        """Do what the key says; what is typed into the prompt does not come here."""
        self.message = ()
        key = event.character if event.is_printable and event.character else event.key
        if self.ask is Ask.NOTHING and key in AIMED and self.has_shifted:
            self.tell("the list has just moved: press again", "bold yellow")
            return
        if self.page is TopPage.HELP:
            self._help_key(key)
        elif self.ask is not Ask.NOTHING:
            deeds = PANEL_KEYS
            if key in deeds:
                deeds[key](self)
        elif key in (deeds := SESSION_KEYS if self.page is TopPage.SESSION else LIST_KEYS):
            deeds[key](self)
        self.show_all()

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
            self.open_panel(self.plan.kind if self.plan and self._is_named else None)

    def turn_page(self, by: int) -> None:
        """Select an entry that is a page further on."""
        self.move(by * self.list_part.page)

    def scroll_session(self, by: int) -> None:
        """Scroll the session by so many lines."""
        self.sheet("session").scroll_lines(by)

    def switch_needs(self) -> None:
        """Show only what needs the person, or all."""
        self.listing.switch_needs()

    def arrange(self) -> None:
        """Put the list in order again."""
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
        self.page, self.near = TopPage.SESSION, None
        self.sheet("session").top = 0
        self.read_near()

    def close_session(self) -> None:
        """Go back to the list."""
        self.page, self.near = TopPage.LIST, None

    def help(self) -> None:
        """Show what each key does."""
        self._before_help, self.page = self.page, TopPage.HELP

    def attach(self) -> None:
        """Show the session's terminal; this program waits meanwhile."""
        entry = self.listing.current
        if entry is None or entry.row is None:
            self.tell("that is no session: nothing to attach to", "bold yellow")
            return
        place = find_place(self.root, entry.row.id, self.feed.projects)
        if place.host:
            self.tell(f"connecting to {place.host} …", lines.DIM)

        def reach() -> None:
            try:
                enter = place.prepare_attachment()
            except SmError as error:
                self.call_from_thread(self.tell, f"not done: {error.message}", "bold red")
            else:
                self.call_from_thread(self._enter, place, enter)

        self.run_worker(reach, thread=True, group="attach", exclusive=True)

    def _enter(self, place: Place, enter: Callable[[], int]) -> None:
        self.message = ()
        try:
            with self.suspend():
                failed = enter()
        except SmError as error:
            self.tell(f"not done: {error.message}", "bold red")
        else:
            if failed and place.host:
                self.tell("the connection to its terminal has ended", "bold yellow")
        self.refresh()

    def _fatal_error(self) -> None:
        # Overridden: textual would print a traceback with all that is known of it. Whoever has run
        # this raises what went wrong, as every command does.
        self._close_messages_no_wait()

    @property
    def error(self) -> Exception | None:
        """Exception that ended the program; None if the person did."""
        found = self._exception
        return found.error if isinstance(found, WorkerFailed) else found  # type: ignore[return-value]


Deed = Callable[[Top], object]


def _also(deed: Deed, keys: Iterable[str]) -> dict[str, Deed]:
    return dict.fromkeys(keys, deed)


def _answer(act: ActKind) -> Deed:
    return lambda top: top.open_panel(act)


ANSWERS = {key: _answer(act) for key, act in KEYS.items()}
ACTS: dict[str, Deed] = {
    **ANSWERS,
    " ": Top.peek,
    "r": lambda top: top.open_panel(ActKind.REPLY),
    "s": lambda top: top.open_panel(ActKind.SEND),
    "p": lambda top: top.open_panel(ActKind.PAUSE),
    "a": Top.attach,
    "?": Top.help,
    "q": Top.leave,
}
AIMED = ACTS.keys() - {"?", "q"}
"""Keys that act on the selected entry."""
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
    **ANSWERS,
    **_also(lambda top: top.scroll_peek(5), ("pagedown", "ctrl+f")),
    **_also(lambda top: top.scroll_peek(-5), ("pageup", "ctrl+b")),
    "escape": Top.close_panel,
    "enter": Top.confirm,
    "down": lambda top: top.move(1),
    "up": lambda top: top.move(-1),
    "q": Top.close_panel,
    "n": Top.close_panel,
    "y": Top.confirm,
}
