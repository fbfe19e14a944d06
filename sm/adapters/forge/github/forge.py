"""GitHub, also GitHub Enterprise: what it does alone among the forges with such an interface."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.combine import Part
from sm.adapters.forge.errors import AtWorkError
from sm.adapters.forge.github.details import Details
from sm.adapters.forge.github.observe import Observer
from sm.adapters.forge.model import InlineComment, PullRequest, Review, ReviewState
from sm.adapters.forge.rest.forge import RestForge
from sm.adapters.forge.rest.log import BYTES, trim_log
from sm.adapters.forge.rest.pulls import send_review
from sm.adapters.forge.rest.reader import GONE, READ, WRITE
from sm.adapters.forge.rest.shapes import Merged, Run, Runs
from sm.adapters.forge.web.errors import RefusedError
from sm.errors import UsageError

LOG = "log"
EVENTS = {
    ReviewState.APPROVED: "APPROVE",
    ReviewState.CHANGES_REQUESTED: "REQUEST_CHANGES",
    ReviewState.COMMENTED: "COMMENT",
}
PASSED = ("success", "neutral", "skipped")


def find_graphql(base: str) -> str:
    """The address of GraphQL beside that of REST; on GitHub Enterprise it is not below it."""
    return f"{base.removesuffix('/v3')}/graphql"


class GithubForge(RestForge):
    """One repository on GitHub."""

    # Observing

    def make_observer(self) -> Observer:
        """What makes one observation of the repository."""
        graphql = find_graphql(self.web.base)
        details = Details(self.reader, graphql, has_ci=self.settings.has_ci)
        return Observer(self.reader, details, self.settings)

    # Pull requests

    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head`."""
        remarks = [
            {"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body}
            for one in comments
        ]
        data: dict[str, object] = {"event": EVENTS[state], "commit_id": head, "body": body}
        data |= {"comments": remarks} if remarks else {}
        return send_review(self.reader, number, data, comments)

    def read_diff(self, number: int) -> str:
        """What a pull request changes, as a patch."""
        path, media = f"{self.reader.at}/pulls/{number}", "application/vnd.github.diff"
        return self.web.get(path, READ, media=media).body.decode("utf-8", "replace")

    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have GitHub merge at exactly this head."""
        data = {"sha": pull.head, "merge_method": self.settings.merge_method}
        if message:
            title, _, rest = message.partition("\n")
            data |= {"commit_title": title, "commit_message": rest.strip()}
        path = f"{self.reader.at}/pulls/{pull.number}/merge"
        return self.web.write("PUT", path, WRITE, data).read(Merged).sha or ""

    # Checks

    def read_log(self, part: Part, head: str) -> str:
        """The log of a job of GitHub Actions, or else what the check says of itself."""
        lines = self.settings.log_lines
        if part.has_log:
            try:
                path = f"{self.reader.at}/actions/jobs/{part.id}/logs"
                return trim_log(self.web.download(path, LOG, BYTES), lines)
            except RefusedError as error:
                if error.status not in (403, *GONE):
                    raise
        said = part.text or f"no log is to be had here: see {part.url}"
        return trim_log(said.encode(), lines)

    def rerun_check(self, head: str) -> None:
        """Have GitHub Actions run again: what has failed, or everything if nothing has.

        Raises:
            AtWorkError: it is at work on the commit.
            UsageError: it has never run on it.

        """
        asked = {"head_sha": head}
        runs = self.reader.ask("/actions/runs", Runs, f"commit '{head}'", asked).workflow_runs
        if not runs:
            raise UsageError(f"GitHub Actions has not run on {head[:12]}: start CI where it runs")
        if any(run.status != "completed" for run in runs):
            raise AtWorkError(f"GitHub Actions is at work on {head[:12]}: wait for it")
        failed = [run for run in runs if run.conclusion not in PASSED]
        what = "rerun-failed-jobs" if failed else "rerun"
        self._written(lambda: self._rerun(failed or runs, what))

    def _rerun(self, runs: Iterable[Run], what: str) -> None:
        for run in runs:
            path = f"{self.reader.at}/actions/runs/{run.id}/{what}"
            self.web.write("POST", path, WRITE, harmless=True)
