"""What is called of each face; `test_golden.py` holds the lists against what there is."""

from __future__ import annotations

WIDTHS = (80, 120, 200)
"""Columns of the terminals."""

READS: dict[str, tuple[str, ...]] = {
    "status": ("", "--project shop"),
    "needs": ("", "--verbose"),
    "children": ("", "ann"),
    "context": ("", "harb#1"),
    "cost": ("", "--by model", "--by project", "--by issue --csv", "--since 7d", "--prices"),
    "budget": ("",),
    "health": ("", "harb#1", "--check"),
    "queue": ("harb#1", "ann", f"harb#1 --show {'a' * 16}", f"harb#1 --show {'0' * 16}"),
    "worktree list": ("", "--project harb"),
    "issue list": ("--project harb --state all", "--project shop"),
    "issue show": ("3 --project harb", "9 --project harb", "77 --project harb"),
    "issue view": ("3 --project harb",),
    "pr list": ("--project harb --state all", "--project shop"),
    "pr show": ("20 --project harb", "21 --project harb", "23 --project harb"),
    "pr view": ("23 --project harb",),
    "pr checks": ("21 --project harb", "24 --project harb"),
    "pr diff": ("20 --project harb", "20 --project harb --stat"),
    "trace": ("harb 1", "harb 3", "shop 3", "harb 99", "ann"),
    "events": ("harb 1", "--since 2h"),
    "logs": ("harb 1", "harb 1 --monitor", "harb 2"),
    "tail": ("harb#1", "ann"),
    "wait": ("harb#2 --timeout 0", "harb#1 --timeout 0", "ann --for dialog --timeout 0"),
    "quota": ("",),
    "whoami": ("",),
    "host list": ("",),
    "host check": ("box",),
    "config show": ("",),
    "config check": ("",),
    "notify": ("",),
    "hooks show": ("",),
    "cycle": ("harb#1 --dry-run", "harb#2 --dry-run", "ann --dry-run"),
    "bridge get": ("{thread}",),
    "bridge read": ("{thread}",),
    "mcp grants": ("",),
    "poll": ("--dry-run --project harb",),
    "uninstall": ("--dry-run",),
    "sync": ("--dry-run --project harb",),
}
"""The verbs that only read, each with its arguments."""

LIVE = frozenset(READS) - {"poll", "wait", "uninstall", "sync", "events"}
"""Those that are also called on terminals."""
ISSUES = (1, 2, 3, 4, 6, 8, 9, 10, 12, 15, 16)
"""Those whose sessions are looked at one by one."""
SESSIONS = (*(f"dev-harb-{issue}" for issue in ISSUES), "s-000000a1", "dev-shop-3", "dev-harb-99")
SHOWN = ("dev-harb-2", "dev-harb-3", "dev-harb-6", "dev-harb-16", "s-000000a1", "dev-shop-3")
"""Those whose pages are written down: waits for a review, asks, parked, elsewhere, own, ended."""

GETS: dict[str, tuple[str, ...]] = {
    "http/sessions.txt": ("/sessions", *(f"/sessions/{one}" for one in SESSIONS)),
    "http/needs.txt": ("/needs", *(f"/sessions/{one}/needs" for one in SESSIONS)),
    "http/server.txt": ("/health", "/openapi.json", "/nothing"),
    "http/metrics.txt": ("/metrics",),
    "http/cost.txt": ("/cost", "/cost?by=model"),
}
"""The paths that answer programs."""
PARTS = ("story", "messages", "diff", "unpushed", "documents", "screen", "pull", "desk", "news")

PAGES: dict[str, tuple[str, ...]] = {
    "page/overview.txt": ("/", "/page/changes?since=", "/page/timeline?span=7d", "/page/brake"),
    "page/sessions.txt": tuple(f"/page/session/{one}" for one in SHOWN),
    "page/parts.txt": (
        *(f"/page/session/dev-harb-2/{part}" for part in PARTS),
        *(f"/page/session/dev-harb-1/{part}" for part in ("messages", "story", "desk")),
        "/page/session/dev-harb-10/pull",
        "/page/session/dev-harb-9/pull",
        "/page/terminal/dev-harb-1/text",
    ),
    "page/numbers.txt": (
        "/page/numbers",
        "/page/numbers/numbers.json",
        "/page/numbers/nothing.csv",
        "/page/numbers/nothing.svg",
    ),
    "page/logins.txt": ("/page/login", "/page/browsers", "/page/nothing"),
}
"""The paths that answer people, whose browser has logged in."""

LEFT_OUT: dict[str, str] = {
    "react": "acts/passes.txt has a pass over each session",
    "top": "needs a terminal; terminal/top.txt has its lines",
    "doctor": "tells of the machine's programs: tests/plugins/doctor",
    "init": "asks git, the machine and a person: tests/setup",
    "serve": "goes on: http and page have what it answers",
    "mcp": "goes on, and answers programs: tests/plugins/chat/mcp",
    "mcp secret": "prints a secret",
    "hooks install": "writes a person's own settings: tests/cli/test_hooks.py",
    "hooks uninstall": "the same",
    "config allow": "asks for a folder of another user: tests/cli",
    **dict.fromkeys(
        [
            *("host add", "host adopt", "host begin", "host carry", "host facts", "host job"),
            *("host link", "host look", "host report", "host serve", "host wishes"),
        ],
        "talks to another machine, or is called by one: tests/plugins/hosts",
    ),
    **dict.fromkeys(
        [
            *("react-server", "rotate", "watch", "news", "notifier", "terminal", "ci-run"),
            *("start-session", "ledger tell", "service"),
        ],
        "is called by programs, and starts some",
    ),
}
"""The verbs that are not called, and why; their help is written down all the same."""

LEFT_OUT_PATHS: dict[str, str] = {
    "/page/terminal/{ident}": "is a WebSocket: tests/plugins/page/test_terminal.py",
    "/page/need": "is open in page/sessions.txt; its keys are other ones in each run",
    "/page/change/{ident}/{index}": "is of a patch: tests/plugins/page/test_changes_page.py",
    "/page/stream": "goes on for as long as the browser listens",
}
"""The same for paths."""
