"""What the forge and the remote refuse something by: the same try would be refused again."""

from __future__ import annotations

from sm.adapters.forge.errors import MergeRefusedError, NothingToMergeError
from sm.adapters.git_push import PushRefusedError
from sm.base.errors import UsageError
from sm.plugins.forges.web.errors import RefusedError

REFUSALS = (MergeRefusedError, NothingToMergeError, PushRefusedError, RefusedError, UsageError)
