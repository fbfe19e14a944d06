"""Errors by which the forge and the remote refuse: the same try would be refused again."""

from __future__ import annotations

from sm.adapters.forge.errors import MergeRefusedError, NothingToMergeError, RefusedError
from sm.adapters.git_push import PushRefusedError
from sm.base.errors import UsageError

REFUSALS = (MergeRefusedError, NothingToMergeError, PushRefusedError, RefusedError, UsageError)
