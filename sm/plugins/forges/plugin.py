"""Forges elsewhere: GitHub, GitLab, Forgejo and Gitea."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    forges={
        "github": "sm.plugins.forges.github.entry",
        "forgejo": "sm.plugins.forges.gitea.entry",
        "gitea": "sm.plugins.forges.gitea.entry",
        "gitlab": "sm.plugins.forges.gitlab.entry",
    },
    verbs={
        "quota": Verb(
            "sm.plugins.forges.quota_verb:command",
            "Show the requests to forges elsewhere, and what is left.",
            after="health",
        ),
        "git-credential": Verb(
            "sm.plugins.forges.git_credential_verb:command",
            "Tell git the token of a forge.",
            after="start-session",
            hidden=True,
        ),
    },
)
