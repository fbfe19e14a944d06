"""Panel that asks a person before something is done, and does it."""

from __future__ import annotations

from textual.widgets import Input

from sm.base.act import ActKind
from sm.base.errors import SmError
from sm.plugins.top import acts, lines
from sm.plugins.top.acts import ActPlan, ShownChange
from sm.plugins.top.listing import ListEntry
from sm.plugins.top.reader import Reading
from sm.plugins.top.view import Ask, TopPage
from sm.plugins.top.widgets import BREAK


class Asking(Reading):
    """Asks for an answer, a message or a yes, and for the words that are looked for.

    `drafts` are what was typed and not sent, by session.
    """

    _is_named = False
    """Whether the person has named the act; else it follows from what the entry needs."""
    seen_head = ""
    """The commit that the list had when the panel was opened."""
    _found_from = ""
    _sought = ""
    drafts: dict[str, str]

    def on_load(self) -> None:
        """Begin without drafts."""
        self.drafts = {}

    def peek(self) -> None:
        """Show the last words, and take an answer."""
        self.open_panel(None)

    def open_panel(self, act: ActKind | None) -> None:
        """Ask for what the act needs; without an act, for what the entry needs."""
        entry = self.listing.current
        if entry is None:
            return
        self._is_named = act is not None
        try:
            wish = act or acts.choose_answer(entry)
            self.plan = acts.plan(self.root, wish, entry, self.feed.projects) if wish else None
        except SmError as error:
            self.plan = None
            if act:
                self.tell(error.message, "bold yellow")
                self.close_panel()
                return
        self.ask = Ask.ACT
        if self.plan and self.plan.kind in acts.OF_PULL:
            self._read_change(self.plan, entry)
        if self.near and self.near.key != entry.key:
            self.near = None
        if self.near is None:
            self.read_near()
        if self.plan and self.plan.asks:
            self.prompt.value = self.drafts.pop(self._draft_of(self.plan), self.plan.proposal)
            optional = " (may be left out)" if self.plan.optional else ""
            self.prompt.placeholder = f"{self.plan.asks}{optional}"
            self.prompt.cursor_position = len(self.prompt.value)
            self._type_there()
        else:
            self.set_focus(None)

    def _read_change(self, plan: ActPlan, entry: ListEntry) -> None:
        """Read in a thread what the pull request changes: nothing is decided about it before."""
        self.change, self.sheet("peek").top = None, 0
        self.seen_head = entry.row.head if entry.row else ""

        def read() -> None:
            found = acts.read_change(self.root, plan, entry, self.feed.projects)
            self.call_from_thread(self._take_change, plan, found)

        self.run_worker(read, thread=True, group="change", exclusive=True)

    def _take_change(self, plan: ActPlan, found: ShownChange) -> None:
        if self.plan is not plan:  # the panel is for something else by now
            return
        self.change, self.plan = found, found.plan or plan
        self.show_all()

    def _find_hindrance(self, plan: ActPlan) -> str:
        """Say why the act is not done yet; '' if nothing hinders it."""
        if plan.kind not in acts.OF_PULL:
            return ""
        if self.change is None or self.change.plan is not plan:
            why = self.change.problem if self.change else ""
            return f"what it changes cannot be read: {why}" if why else "wait: it is still read"
        entry = self.listing.current
        seen = entry.row.head if entry and entry.key == plan.key and entry.row else ""
        if seen not in ("", plan.act.head, self.seen_head):
            return "new commits: escape, and the same key again, shows them"
        return ""

    def scroll_peek(self, by: int) -> None:
        """Scroll what is shown above the question by so many lines."""
        self.sheet("peek").scroll_lines(by)

    @staticmethod
    def _draft_of(plan: ActPlan) -> str:
        """Name the draft: a message and an answer may be the same, a review is neither."""
        return plan.key if plan.kind in acts.TYPED else f"{plan.kind} {plan.key}"

    def _type_there(self) -> None:
        """Give the prompt the keys; a part that is not shown yet cannot take them."""
        self.prompt.styles.display = "block"
        self.prompt.focus()

    def keep_draft(self) -> None:
        """Keep what was typed for the next time."""
        typed = self.prompt.value
        if self.plan and self.plan.asks and typed.strip() and typed != self.plan.proposal:
            self.drafts[self._draft_of(self.plan)] = typed

    def close_panel(self) -> None:
        """Leave the panel; nothing is done."""
        if self.ask is Ask.ACT:
            self.keep_draft()
        elif self.ask is Ask.FIND and self._found_from:
            self.listing.selected = self._found_from
        self._end_panel()

    def _end_panel(self) -> None:
        self.ask, self.plan, self.change, self.peeked = Ask.NOTHING, None, None, 0
        self.set_focus(None)
        self.prompt.value = ""
        if self.page is not TopPage.SESSION:
            self.near = None

    def confirm(self) -> None:
        """Do what the panel asks for."""
        if self.ask is Ask.ACT and self.plan and not self.plan.asks:
            plan = self.plan
            if why := self._find_hindrance(plan):
                self.tell(why, "bold yellow")
                return
            self._end_panel()
            self._carry_out(plan, "")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        event.stop()
        self.message = ()
        if self.ask is Ask.FIND:
            self._found_from = ""
            self._end_panel()
        elif self.plan and (self.plan.optional or self.prompt.text.strip()):
            plan, text = self.plan, self.prompt.text
            if why := self._find_hindrance(plan):
                self.tell(why, "bold yellow")
                return
            self._end_panel()
            self._carry_out(plan, text)
        self.show_all()

    def _carry_out(self, plan: ActPlan, text: str) -> None:
        """Carry it out in a thread, and say what came of it."""
        self.tell(f"{plan.says.partition(':')[0].partition('?')[0]} …", lines.DIM)

        def work() -> None:
            try:
                told = " ".join(acts.carry_out(self.root, plan, text, self.feed.projects))
            except SmError as error:
                self.call_from_thread(self._refuse, plan, text, error.message)
            else:
                self.call_from_thread(self.tell, told, "bold green")
            self.feed.spoil()

        self.run_worker(work, thread=True, group="acts")

    def _refuse(self, plan: ActPlan, text: str, why: str) -> None:
        """Say why it was not done, and keep what was typed."""
        if text:
            self.drafts.setdefault(self._draft_of(plan), text.replace("\n", BREAK))
        self.tell(f"not done: {why}", "bold red")

    def find(self) -> None:
        """Ask for words that the wanted entry has."""
        self.ask, self._found_from = Ask.FIND, self.listing.selected
        self.prompt.value = ""
        self._type_there()

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
            self.message = ()
        self.show_all()

    def find_again(self, step: int) -> None:
        """Select the next entry that has these words."""
        if not self._sought:
            self.find()
        elif not self.listing.find(self._sought, step=step):
            self.tell(f"nothing has '{self._sought}'", "bold yellow")
