#!/usr/bin/env bash
# Usage: dev-agent.sh PROJECT ISSUE TASK
#
# Has an agent do TASK in the work tree $WORKTREE (default: here), by the phase protocol. What sm does
# for each issue with a forge, in small: $CI is the command that judges (default: true), $REVIEW the
# one that reviews (default: true); what they print goes to the agent if they fail.
# Exit codes: 0 done, 1 failed, 2 it asks a person.
set -euo pipefail
# shellcheck source=docs/examples/agent.sh
source "${BASH_SOURCE[0]%/*}/../agent.sh"

(($# == 3)) || { sed -n '2s/^# //p' "$0" >&2 && exit 2; }
project=$1 issue=$2 task=$3
WORKTREE=${WORKTREE:-$PWD}
SESSION_NAME=dev-$project-$issue
PHASE_FILE=${SM_STATE_ROOT:-/tmp}/dev-session-$project-$issue.phase

_on_phase_change() {
  local said
  case $1 in
  PHASE:awaiting_ci)
    if said=$(cd "$WORKTREE" && bash -c "${CI:-true}" 2>&1); then
      tell_agent "CI passed. Write PHASE:awaiting_review."
    else
      tell_agent "CI failed. Mend it, then write PHASE:awaiting_ci again: $said"
    fi
    ;;
  PHASE:awaiting_review)
    if said=$(cd "$WORKTREE" && bash -c "${REVIEW:-true}" 2>&1); then
      tell_agent "Approved. Merge it, then write PHASE:done."
    else
      tell_agent "Changes are requested: $said"
    fi
    ;;
  PHASE:crashed) # git is the checkpoint: the next agent goes on from what it has
    ((restarts++ < MAX_RESTARTS)) || return 1
    said=$(git -C "$WORKTREE" log --oneline -5 2>&1 && git -C "$WORKTREE" status --short 2>&1) || :
    start_agent "$WORKTREE" "$task Go on with the work that is there: $said"
    ;;
  PHASE:failed) ;; # the session may be gone already: nothing is done to it here
  esac
}

: >"$PHASE_FILE"
start_agent "$WORKTREE" "$task Write PHASE:awaiting_ci to $PHASE_FILE when it is pushed."
monitor_phase_loop "$PHASE_FILE" "${CLAUDE_TIMEOUT:-7200}" _on_phase_change || :
finish
