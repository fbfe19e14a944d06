"""Forges elsewhere: GitHub, GitLab, Forgejo and Gitea."""

from __future__ import annotations

from sm.base.plugin import ForgeKind, Plugin, Verb

SETTINGS = "sm.plugins.forges.settings"
CHOOSER = "sm.plugins.forges.chooser"

PLUGIN = Plugin(
    forges={
        "github": ForgeKind(
            "sm.plugins.forges.github.entry",
            f"{SETTINGS}:GithubSettings",
            f"{CHOOSER}:choose_github",
        ),
        "forgejo": ForgeKind(
            "sm.plugins.forges.gitea.entry",
            f"{SETTINGS}:ForgejoSettings",
            f"{CHOOSER}:choose_forgejo",
        ),
        "gitea": ForgeKind(
            "sm.plugins.forges.gitea.entry",
            f"{SETTINGS}:GiteaSettings",
            f"{CHOOSER}:choose_gitea",
        ),
        "gitlab": ForgeKind(
            "sm.plugins.forges.gitlab.entry",
            f"{SETTINGS}:GitlabSettings",
            f"{CHOOSER}:choose_gitlab",
        ),
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
