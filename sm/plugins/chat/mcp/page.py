"""Makes the page that asks a person whether a client may use the tools: HTML without a script."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from string import Template

from msgspec import Struct

from sm.base.text import one_line

NAME_LIMIT = 60

STYLE = """\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 32rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.35rem; line-height: 1.3; }
strong { overflow-wrap: anywhere; }
.note { border-left: .25rem solid #c77700; padding-left: .75rem; }
.fault { border-left: .25rem solid #c62828; padding-left: .75rem; }
label { display: block; font-weight: 600; }
input { box-sizing: border-box; font: inherit; margin: .25rem 0; padding: .6rem; width: 100%; }
#where { margin-top: 0; }
button { border: 1px solid #888; border-radius: .4rem; font: inherit; margin-right: .5rem;
  padding: .6rem 1.4rem; }
.allow { background: #1b5e9e; border-color: #1b5e9e; color: #fff; }
code { font-size: .95em; }
"""

DOCUMENT = Template(
    f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>sm</title>
<style>{STYLE}</style>
</head>
<body>
$body
</body>
</html>
"""
)

QUESTION = Template(
    """\
<h1>May “$name” use your handoffs?</h1>
<p>It could then create, read, answer and close handoffs on this machine, and so speak to the agents
that work on your issues, until you take it back with <code>sm mcp revoke</code>.</p>
<p>“$name” is what it calls itself. Your answer is sent to <strong>$host</strong>.</p>
<p class="note">Allow this only if you have just added this server in that client yourself.</p>
$fault<form method="post" action="$action">
<input type="hidden" name="request" value="$request">
<input type="hidden" name="form" value="$form">
<label for="secret">Secret</label>
<input id="secret" name="secret" type="password" autocomplete="current-password"
  autocapitalize="none" spellcheck="false" aria-describedby="where" autofocus>
<p id="where"><code>sm mcp secret</code> prints it, on the machine where sm runs.</p>
<button class="allow" name="answer" value="allow">Allow</button>
<button name="answer" value="deny">Deny</button>
</form>"""
)

FAULT = Template('<p class="fault" role="alert">$fault</p>\n')

NOTE = Template("<h1>$title</h1>\n<p>$text</p>")


class Question(Struct, frozen=True):
    """Fields that the page shows and sends back. All of it is unchecked input."""

    name: str
    host: str
    action: str
    request: str
    form: str
    fault: str = ""


def ask(question: Question) -> str:
    """Return the page that asks for the secret and for an answer."""
    fault = FAULT.substitute(fault=escape(question.fault)) if question.fault else ""
    return _document(
        QUESTION.substitute(
            name=escape(one_line(question.name, NAME_LIMIT) or "A client without a name"),
            host=escape(one_line(question.host)),
            action=escape(question.action),
            request=escape(question.request),
            form=escape(question.form),
            fault=fault,
        )
    )


def tell(title: str, text: str) -> str:
    """Return a page that only shows a text."""
    return _document(NOTE.substitute(title=escape(title), text=escape(text)))


def _document(body: str) -> str:
    return DOCUMENT.substitute(body=body)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


HEADERS = {
    # No script, picture or frame, and no other page around this one. 'form-action' is left out,
    # because browsers also apply it to every redirect that follows the answer.
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_hash(STYLE)}'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # With 'no-referrer' browsers would send the form with the origin 'null'.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
