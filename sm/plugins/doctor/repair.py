"""Repairs findings where that is safe: `sm doctor --fix`."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, structs

from sm.base import plugin
from sm.base.errors import SmError
from sm.setup.finding import Finding, Level


class RepairResult(StrEnum):
    """Outcome of a repair."""

    NONE = ""
    """No repair is safe, or none was asked for."""
    DONE = "done"
    KEPT = "kept"
    WOULD = "would"


class ToldFinding(Struct, frozen=True):
    """A finding as it is told.

    `fix` is what `--fix` does about it, '' for nothing; afterwards what it did, or why it did not.
    """

    level: Level
    what: str
    advice: str
    where: str
    fix: str = ""
    result: RepairResult = RepairResult.NONE

    @property
    def is_broken(self) -> bool:
        """Whether nothing works as long as the finding stands."""
        return self.level is Level.FAIL and self.result is not RepairResult.DONE

    @property
    def is_well(self) -> bool:
        """Whether nobody has to know of the finding."""
        return self.level is Level.OK and not self.result


def tell(finding: Finding) -> ToldFinding:
    """Return the finding as it is told without a repair."""
    doing = finding.fix.doing if finding.fix else ""
    return ToldFinding(finding.level, finding.what, finding.advice, finding.where, doing)


def repair(finding: Finding, *, dry_run: bool) -> ToldFinding:
    """Repair what was found, if that is safe; return what came of it."""
    if finding.fix is None:
        return tell(finding)
    fix = finding.fix
    try:
        kept = fix.foresee() if dry_run else fix.make()
    except SmError as error:
        kept = error.message
    except Exception as error:  # it may be anybody's code
        kept = plugin.describe(error)
    if kept:
        return structs.replace(
            tell(finding), fix=kept, advice=fix.by_hand, result=RepairResult.KEPT
        )
    if dry_run:
        return structs.replace(tell(finding), result=RepairResult.WOULD)
    return structs.replace(tell(finding), fix=fix.done, advice="", result=RepairResult.DONE)
