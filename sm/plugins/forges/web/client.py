"""The HTTP client for forges: one pool of connections, and rules for what may be sent again.

A GET, PUT, PATCH or DELETE says how things shall be, so it may be sent twice. A POST makes
something: once it may have arrived, it is not sent again here, as the forge may still be at work on
it. Who calls repeats it later, and looks for its trace before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import structs

from sm.adapters.forge.errors import RefusedError, UnknownOutcomeError, UnreachableError
from sm.adapters.token import Token, TokenError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.errors import (
    BadAnswerError,
    LimitedError,
    MovedAwayError,
    TokenRefusedError,
    TooLongError,
)
from sm.plugins.forges.web.ledger import QuotaBook, QuotaLedger, RequestCount
from sm.plugins.forges.web.limits import find_wait, is_of_bucket, read_limit
from sm.plugins.forges.web.request import PATIENCE_S, AgainError, Params, SentRequest, repeat

if TYPE_CHECKING:
    import httpx2

CONNECT_S, READ_S, EXCHANGE_S = 5.0, 20.0, 60.0
"""Time for a connection, for the next part of an answer, and for a whole request, in seconds."""
REDIRECTS = 3
MOVED = (301, 302, 307, 308)
NOT_SHOWN = range(300, 500)
"""A page leads to a login instead, or says that there is none for everybody."""
PLAIN = "text/plain"
TRANSIENT = (500, 502, 503, 504)
THING = re.compile(r"/(?:repos/[^/?]+/[^/?]+|repositories/(?P<id>[0-9]+))(?P<rest>[^?]*)")
"""An address in a repository, by its name or its id, and what it is of there."""

SSO = re.compile(r"\burl=(https://\S{1,500})")
"""Page on which a person authorises a token for an organisation: GitHub's header `X-GitHub-SSO`
(docs.github.com, "Authenticating to the REST API")."""


class ForgeClient:
    """A forge at `base`. The token is read at the first request, and again if it was refused."""

    def __init__(
        self,
        base: str,
        read_token: Callable[[], Token],
        ledger: QuotaLedger,
        headers: Mapping[str, str] | None = None,
        scheme: str = "Bearer",
    ) -> None:
        """`headers` go with each request, `scheme` stands before the token."""
        self.base = base.rstrip("/")
        self.ledger = ledger
        self._read_token, self._scheme = read_token, scheme
        self._headers = dict(headers or {})
        self._token: Token | None = None
        self.home = 0
        """The id of the repository that all requests are about, if it is known."""

    @property
    def token(self) -> Token:
        """The token of this process."""
        if self._token is None:
            self._token = self._read_token()
        return self._token

    @cached_property
    def _http(self) -> httpx2.Client:
        import weakref

        import httpx2

        from sm.plugins.forges.web import transport

        made = httpx2.Client(
            verify=transport.load_certificates(),
            timeout=httpx2.Timeout(READ_S, connect=CONNECT_S),
            limits=httpx2.Limits(max_connections=4, max_keepalive_connections=2),
            headers={"User-Agent": "sm-orchestrator", "Accept": "application/json"} | self._headers,
            follow_redirects=False,
        )
        weakref.finalize(self, made.close)  # a server opens forges again and again
        return transport.guard(made)

    def close(self) -> None:
        """Close the connections."""
        if "_http" in self.__dict__:
            self._http.close()
            del self.__dict__["_http"]

    # Asking

    def get(
        self,
        path: str,
        purpose: str,
        params: Params | None = None,
        *,
        etag: str = "",
        accept: tuple[int, ...] = (),
        media: str = "",
    ) -> HttpAnswer:
        """Ask for `path`. With `etag` the answer may be 304 without a body.

        Statuses in `accept` are answers and no errors. `media` is the kind of body that is wanted.
        """
        headers = {"If-None-Match": etag} if etag else {}
        if media:
            headers["Accept"] = media
        accept = (*accept, 304) if etag else accept
        return self.send(
            SentRequest("GET", path, purpose, params or {}, headers=headers, accept=accept)
        )

    def download(self, path: str, purpose: str, limit: int) -> bytes:
        """The last `limit` bytes of what `path` leads to, which may be elsewhere.

        The token goes to the forge alone.
        """
        answer = self.send(SentRequest("GET", path, purpose, accept=MOVED, limit=-limit))
        if answer.status not in MOVED:
            return answer.body
        where = urljoin(f"{self.base}{path}", answer.headers.get("location", ""))
        if not where.startswith(("https://", f"{self.base}/")):
            raise BadAnswerError(f"the answer to GET {path} leads nowhere safe")
        return repeat(lambda: self._try_elsewhere(where, path, limit)).body

    def download_page(self, url: str, limit: int) -> bytes:
        """The last `limit` bytes of a page of the forge, as everybody sees it: without the token.

        Raises:
            RefusedError: it is a page of another server, not for everybody, or no plain text.

        """
        if urlsplit(url)[:2] != urlsplit(self.base)[:2]:
            raise RefusedError(f"{one_line(url, 200)} is no page of the forge", 0, "")
        found = repeat(lambda: self._try_elsewhere(url, url, limit, accept=NOT_SHOWN))
        if found.status != 200 or not found.headers.get("content-type", "").startswith(PLAIN):
            raise RefusedError(f"{one_line(url, 200)} is not to be had", found.status, "")
        return found.body

    def _try_elsewhere(
        self, url: str, path: str, limit: int, accept: Collection[int] = ()
    ) -> HttpAnswer:
        import httpx2

        from sm.plugins.forges.web import transport

        try:
            with transport.exchange(EXCHANGE_S) as now, self._http.stream("GET", url) as found:
                now.head_left = None
                body = _read_bounded(found, -limit, path)
                status, headers = found.status_code, dict(found.headers)
        except httpx2.HTTPError as error:
            raise AgainError(self._unreachable(path, error)) from None
        except httpx2.InvalidURL as error:
            raise BadAnswerError(f"no address for {path}: {_describe(error)}") from None
        if status != 200 and status not in accept:
            raise AgainError(UnreachableError(f"GET {path} leads to an answer of {status}"))
        return HttpAnswer(status, headers, body, path)

    # Writing

    def write(
        self,
        method: str,
        path: str,
        purpose: str,
        body: object = None,
        *,
        accept: tuple[int, ...] = (),
        harmless: bool = False,
    ) -> HttpAnswer:
        """Change something; `harmless` says of a POST that it may be done twice.

        Raises:
            UnknownOutcomeError: a POST may have been done.

        """
        return self.send(
            SentRequest(method, path, purpose, body=body, accept=accept, harmless=harmless)
        )

    def make(
        self, path: str, purpose: str, body: object, landed: Callable[[], bool]
    ) -> HttpAnswer | None:
        """Make something by a POST. None if its answer was lost, and `landed` has found its trace.

        Raises:
            UnknownOutcomeError: there is no trace, or not yet.

        """
        try:
            return self.send(SentRequest("POST", path, purpose, body=body))
        except UnknownOutcomeError:
            if landed():
                return None
            raise

    # Sending

    def send(self, request: SentRequest) -> HttpAnswer:
        """Send a request, again where that is allowed; return the answer.

        Raises:
            UnreachableError: no try was answered.
            UnknownOutcomeError: a POST was not answered, and may have been done.
            LimitedError: no request is taken for a while.
            TokenRefusedError: the token is wrong, or too old.
            RefusedError: the forge refuses it, with a status outside of `request.accept`.
            TooLongError: the answer is longer than `request.limit`.

        """
        book = self.ledger.read()
        if book.blocked_until > time.time() and self.is_limited_by(book):
            raise self._limited(book.blocked_until)
        return repeat(lambda: self._try(request))

    def is_limited_by(self, book: QuotaBook) -> bool:
        """Whether the limits in the ledger are those of our token, and not of one before it.

        Without a token they are taken for ours: nothing could be sent anyway.
        """
        try:
            return book.account in ("", self.token.fingerprint)
        except TokenError:
            return True

    def _limited(self, until: float) -> LimitedError:
        at = time.strftime("%H:%M:%S", time.localtime(until))
        return LimitedError(f"'{self.base}' takes no more requests until {at}", until)

    def _try(self, request: SentRequest) -> HttpAnswer:
        answer = self._follow(request)
        if answer.status in TRANSIENT:
            raise self._lost(request, f"it answers {answer.status} {answer.said}".rstrip())
        self._refuse_limited(answer)  # also one that has a status that would be accepted
        if answer.status in request.accept or answer.status < 300:
            return answer
        raise self._refusal(request, answer)

    def _follow(self, request: SentRequest) -> HttpAnswer:
        """The answer; a repository that was renamed is asked for where it is now."""
        url = request.path if "://" in request.path else f"{self.base}{request.path}"
        for _ in range(REDIRECTS):
            answer = self._exchange(request, url)
            if answer.status not in MOVED or answer.status in request.accept:
                return answer
            url = urljoin(url, answer.headers.get("location", ""))
            if not url.startswith(f"{self.base}/"):  # the token goes nowhere else
                raise BadAnswerError(f"'{one_line(url, 100)}' is not at '{self.base}'")
            self._refuse_elsewhere(request, url)
        raise BadAnswerError(f"{request.what} leads round in a circle")

    def _refuse_elsewhere(self, request: SentRequest, url: str) -> None:
        """A repository may have another name by now; what is in it is still the same.

        Raises:
            MovedAwayError: it is another thing, as an issue is that was transferred.

        """
        asked, found = THING.search(request.path), THING.search(url)
        if not asked or not found:
            return
        is_ours = not self.home or found["id"] in (None, str(self.home))
        if asked["rest"] == found["rest"] and is_ours:
            return
        said = f"it was moved to '{one_line(url, 200)}'"
        raise MovedAwayError(f"{request.what} is refused: {said}", 410, said)

    def _exchange(self, request: SentRequest, url: str) -> HttpAnswer:
        import httpx2

        from sm.plugins.forges.web import transport

        headers = dict(request.headers) | {"Authorization": f"{self._scheme} {self.token.secret}"}
        content = None if request.body is None else msgspec.json.encode(request.body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        params: dict[str, Any] | None = dict(request.params) or None
        try:
            with (
                transport.exchange(EXCHANGE_S, changes=request.changes) as now,
                self._http.stream(
                    request.method, url, params=params, headers=headers, content=content
                ) as found,
            ):
                now.head_left = None
                names = {name.lower(): value for name, value in found.headers.items()}
                answer = HttpAnswer(found.status_code, names, b"", request.what)
                body = _read_bounded(found, request.limit, request.what)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            self._enter(request, None)
            raise AgainError(self._unreachable(request.what, error)) from None
        except httpx2.HTTPError as error:
            self._enter(request, None)
            raise self._lost(request, _describe(error)) from None
        except httpx2.InvalidURL as error:
            raise BadAnswerError(f"no address for {request.what}: {_describe(error)}") from None
        except TooLongError:
            self._enter(request, answer)
            raise
        self._enter(request, answer)
        return structs.replace(answer, body=body)

    def _enter(self, request: SentRequest, answer: HttpAnswer | None) -> None:
        """Enter the request into the ledger: a 304 costs nothing, and neither does no answer."""
        status = answer.status if answer else 0
        limit = read_limit(answer.headers, time.time()) if answer else None
        count = RequestCount(
            requests=1,
            unchanged=int(status == 304),
            failed=int(not answer or status >= 400),
            points=int(bool(answer) and status != 304),
        )
        self.ledger.count(request.purpose, count, limit, self.token.fingerprint)

    # Failures

    def _lost(self, request: SentRequest, why: str) -> AgainError:
        """No answer, or an error of the forge's own: the request may have been carried out."""
        if request.may_repeat:
            return AgainError(UnreachableError(self._clean(f"{request.what} has failed: {why}")))
        said = f"{request.what} may have been done or not: {why}"
        return AgainError(UnknownOutcomeError(self._clean(said)), maybe_done=True)

    def _unreachable(self, what: str, error: Exception) -> UnreachableError:
        why = _describe(error)
        return UnreachableError(self._clean(f"cannot reach '{self.base}' for {what}: {why}"))

    def _refuse_limited(self, answer: HttpAnswer) -> None:
        """Raise AgainError if no more requests are taken for a while."""
        if answer.status < 400:
            return
        now = time.time()
        if (wait_s := find_wait(answer.status, answer.headers, answer.said, now)) is None:
            return
        limited = self._limited(now + wait_s)
        if wait_s > PATIENCE_S and not is_of_bucket(answer.headers, now):
            self.ledger.block(limited.until)
        raise AgainError(limited, wait_s)

    def _refusal(self, request: SentRequest, answer: HttpAnswer) -> Exception:
        said = self._clean(answer.said)
        if answer.status == 401:
            self._token = None  # it may have been replaced where it comes from
            return TokenRefusedError(
                f"'{self.base}' does not accept the token ({said}): see 'sm doctor'"
            )
        if found := SSO.search(answer.headers.get("x-github-sso", "")):
            said = f"{said} Do that at {self._clean(found[1])}".strip()
        words = f"{request.what} is refused ({answer.status}): {said or 'it does not say why'}"
        return RefusedError(words, answer.status, said)

    def _clean(self, text: str) -> str:
        known = [self._token.secret] if self._token else []
        return one_line(redact(text, known), 500)


def _describe(error: Exception) -> str:
    return one_line(str(error), 200) or type(error).__name__


def _read_bounded(found: httpx2.Response, limit: int, what: str) -> bytes:
    """The body; with a negative `limit` the last so many bytes of one that is longer.

    Raises:
        TooLongError: it is longer than `limit`.

    """
    body = bytearray()
    for chunk in found.iter_bytes():
        body += chunk
        if limit < 0:
            del body[: max(len(body) + limit, 0)]
        elif len(body) > limit:
            raise TooLongError(f"the answer to {what} is longer than {limit:,} bytes")
    return bytes(body)
