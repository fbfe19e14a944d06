"""Logins of browsers that act or only read: the secret is in a cookie, on disk is only its hash.

So a server that is started again knows its browsers, and nobody who reads the file can be one.
Several servers may share the file: each looks at it again when it has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, structs

from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.base.text import one_line
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, find_stamp, write_json
from sm.web.rights import Keys, Right

STEP_S = 3600.0
"""Seconds that a clock may be set back without any doubt."""


def _elapse() -> float:
    """Return seconds that also pass while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Ages:
    """Time of one process, which never goes back: logins end, also if the clock is set back.

    While a server runs, time passes for it whatever is done to the clock. For its next start,
    the latest time that was seen is in the file of logins (`Book.seen`). A clock that is a little
    behind that was set right; if it is far behind, nobody knows how old a login is, so none counts
    until the clock is right again.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, elapse: Callable[[], float] = _elapse
    ) -> None:
        """Take `clock`, which tells the time, and `elapse`, seconds from any start."""
        self._clock, self.elapse = clock, elapse
        self._at, self._since = clock(), elapse()

    def tell_time(self) -> float:
        """Return seconds since 1970: by the clock, or as many as have passed if that is later."""
        passed = self.elapse()
        self._at = max(self._clock(), self._at + passed - self._since)
        self._since = passed
        return self._at


def is_in_doubt(now: float, seen: float) -> bool:
    """Say whether the clock went back so far since that nobody knows how much time has passed."""
    return seen - now > STEP_S


LASTS_S = 21 * 24 * 3600.0
"""Time after which a login that nobody has used is over, in seconds."""
RENEWED_S = 24 * 3600.0
"""Time after which the use of a login is written down again, in seconds."""
KEY_S = 600.0
"""Lifetime of a link, in seconds."""
MOST = 50
"""Browsers of each right that are remembered; the oldest of that right is forgotten first."""
DIGITS = 64
CALLED = 80
"""Characters of what a browser calls itself."""
NOTED_S = 3600.0
"""Seconds between two times that are written down (`Book.seen`)."""
LOCKED_S = 5.0


class BrowserNote(Struct, frozen=True):
    """Since when a browser is logged in (seconds since 1970), and what it called itself."""

    since: float = 0.0
    called: str = ""


class Book(Struct, frozen=True):
    """Ends of logins, by the hash of each browser's secret: `until` to act, `readers` to read.

    These and the latest time that was `seen` are seconds since 1970.
    """

    until: dict[str, float] = {}
    readers: dict[str, float] = {}
    about: dict[str, BrowserNote] = {}
    seen: float = 0.0

    def find_right(self, name: str, now: float) -> Right:
        """Return the right of the browser of that name."""
        if self.until.get(name, 0.0) > now:
            return Right.ACT
        return Right.READ if self.readers.get(name, 0.0) > now else Right.NOTHING

    def add(self, name: str, right: Right, until: float, about: BrowserNote) -> Book:
        """Return the book with that browser as well."""
        into = "until" if right is Right.ACT else "readers"
        added = {into: getattr(self, into) | {name: until}, "about": self.about | {name: about}}
        return structs.replace(self, **added)

    def keep(self, names: set[str]) -> Book:
        """Return the book with these browsers alone."""
        until, readers, about = (
            {name: at for name, at in each.items() if name in names}
            for each in (self.until, self.readers, self.about)
        )
        return Book(until, readers, about, self.seen)  # type: ignore[arg-type]

    def is_aging(self, name: str, now: float) -> bool:
        """Whether that browser is logged in, and its last use was written down a while ago."""
        until = max(self.until.get(name, 0.0), self.readers.get(name, 0.0))
        return now < until < now + LASTS_S - RENEWED_S

    def renew(self, name: str, now: float) -> Book:
        """Return the book with the use of that browser, if it is logged in."""
        if not self.is_aging(name, now):
            return self
        until, readers = (
            {one: now + LASTS_S if one == name else at for one, at in each.items()}
            for each in (self.until, self.readers)
        )
        return structs.replace(self, until=until, readers=readers)

    def make_room(self, right: Right, now: float) -> Book:
        """Return the book with the logins that count, and room for one more of that right.

        A browser that only reads can log in again and again, and must not log out one that acts.
        """
        acting, reading = (
            [name for at, name in sorted((at, name) for name, at in each.items()) if at > now]
            for each in (self.until, self.readers)
        )
        full = acting if right is Right.ACT else reading
        del full[: max(0, len(full) - MOST + 1)]
        return self.keep({*acting, *reading})


class Known(NamedTuple):
    """A browser that is logged in. `name` is good for logging it out, and for nothing else."""

    name: str
    right: Right
    about: BrowserNote
    until: float


class Logins:
    """The browsers of a state root. `key` is in the first link, '' for none."""

    def __init__(
        self,
        file: Path,
        tokens: Keys,
        key: str = "",
        right: Right = Right.ACT,
        ages: Ages | None = None,
    ) -> None:
        """Know the browsers that the file names; `key` is good for a login with that `right`."""
        self._file, self._tokens, self._ages = file, tokens, ages or Ages()
        self._guard = threading.Lock()
        self._keys: dict[str, tuple[float, Right]] = {}
        self._read, self._stamp = Book(), (-1, -1, -1)
        self.wrong = 0
        """Attempts to log in with what is neither a key nor a token."""
        if key:
            self._keep_key(key, right)

    def make_key(self, right: Right = Right.ACT) -> str:
        """Make the key of one more link, for another browser."""
        key = make_nonce(32)
        with self._guard:
            self._keep_key(key, right)
        return key

    def log_in(self, secret: str, called: str = "") -> str:
        """Return the secret of a new browser for a link's key or a token; '' if it is neither.

        A key is used up by that. The browser gets the right of the key or the token.
        """
        if not self.knows(secret):
            return ""
        browser = make_nonce(DIGITS // 2)
        with self._changing() as (book, now):
            until, of_key = self._keys.pop(_hash(secret), (0.0, Right.NOTHING))
            is_valid = until > self._ages.elapse()
            right = (is_valid and of_key) or self._tokens.find_secret(secret)
            if not right:  # two came with one key
                return ""
            about = BrowserNote(now, one_line(called)[:CALLED])
            roomy = book.make_room(right, now)
            self._save(roomy.add(_hash(browser), right, now + LASTS_S, about), now)
        return browser

    def knows(self, secret: str) -> bool:
        """Say whether that is the key of a link, or a token; nothing is read or waited for."""
        with self._guard:
            self._drop_old_keys()
            is_key = _hash(secret) in self._keys
        is_known = is_key or bool(self._tokens.find_secret(secret))
        if not is_known:
            self.wrong += 1
        return is_known

    def log_out(self, browser: str) -> None:
        """Forget the browser with that secret."""
        self.forget(_hash(browser))

    def forget(self, name: str) -> None:
        """Forget the browser of that name."""
        with self._changing() as (book, now):
            self._save(book.keep({*book.until, *book.readers} - {name}), now)

    def forget_all(self) -> None:
        """Forget all browsers, and the keys of all links."""
        with self._changing() as (book, now):
            self._keys.clear()
            self._save(book.keep(set()), now)

    def find_right(self, browser: str) -> Right:
        """Return the right of the browser with that secret."""
        if not browser:
            return Right.NOTHING
        with self._guard:
            book, now = self._look()
            name = _hash(browser)
            self._note_sometimes(book, now, name)
            return book.find_right(name, now)

    def list_known(self) -> list[Known]:
        """List all browsers that are logged in, the newest first."""
        with self._guard:
            book, now = self._look()
        every = [
            Known(name, book.find_right(name, now), book.about.get(name, BrowserNote()), until)
            for name, until in (book.until | book.readers).items()
        ]
        return sorted((one for one in every if one.right), key=lambda one: -one.until)

    def _keep_key(self, key: str, right: Right) -> None:
        self._drop_old_keys()
        self._keys[_hash(key)] = self._ages.elapse() + KEY_S, right

    def _drop_old_keys(self) -> None:
        now = self._ages.elapse()
        self._keys = {name: kept for name, kept in self._keys.items() if kept[0] > now}

    def _look(self) -> tuple[Book, float]:
        """Return the logins that count, and the time; another server may have written the file."""
        if (stamp := find_stamp(self._file)) != self._stamp:
            self._read = read_rebuildable(self._file, Book) or Book()
            self._stamp = stamp
        now, seen = self._ages.tell_time(), self._read.seen
        return (Book(), now) if is_in_doubt(now, seen) else (self._read, max(now, seen))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[tuple[Book, float]]:
        """Hold the logins, so that nobody changes them meanwhile; who only looks does not wait."""
        with self._holding_file(LOCKED_S), self._guard:
            yield self._look()

    @contextlib.contextmanager
    def _holding_file(self, timeout_s: float) -> Iterator[None]:
        ensure_private_dir(self._file.parent)
        with lock.hold(self._file.with_suffix(".lock"), timeout_s=timeout_s):
            yield

    def _note_sometimes(self, book: Book, now: float, name: str) -> None:
        """Write down the time and a browser's use now and then; no request waits for that.

        If the file cannot be written, or another server has it, the next request tries again.
        """
        is_late = (book.until or book.readers) and now - book.seen > NOTED_S
        if is_late or book.is_aging(name, now):
            with contextlib.suppress(SmError), self._holding_file(timeout_s=0):
                book, now = self._look()
                self._save(book.renew(name, now), now)

    def _save(self, book: Book, now: float) -> None:
        book = structs.replace(book, seen=now)
        write_json(self._file, book)
        self._read, self._stamp = book, find_stamp(self._file)


def name_browser(browser: str) -> str:
    """Return the name of the browser with that secret."""
    return _hash(browser)


def _hash(secret: str) -> str:
    """Hash once: enough for a secret of 256 bits, which nobody can guess by trying."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def make_csrf_token(browser: str) -> str:
    """Make the CSRF token of that browser's forms, which no other page can know."""
    return hmac.new(browser.encode(), b"form", hashlib.sha256).hexdigest()
