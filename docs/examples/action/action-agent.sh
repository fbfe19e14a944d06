#!/usr/bin/env bash
# Usage: action-agent.sh NAME FORMULA
#
# Has an agent carry out FORMULA, a file that says what is to be done, in the current folder: a job
# without an issue, a branch and a review, such as release notes or a backup that is to be checked.
# Exit codes: 0 done, 1 failed, 2 it asks a person.
set -euo pipefail
# shellcheck source=docs/examples/agent.sh
source "${BASH_SOURCE[0]%/*}/../agent.sh"

(($# == 2)) || { sed -n '2s/^# //p' "$0" >&2 && exit 2; }
SESSION_NAME=action-$1
PHASE_FILE=${SM_STATE_ROOT:-/tmp}/action-session-$1.phase
formula=$(<"$2")

formula_phase_callback() {
  case $1 in
  PHASE:crashed) ((restarts++ < MAX_RESTARTS)) && start_agent "$PWD" "$formula" ;;
  PHASE:failed) ;; # with idle_prompt the session is gone: nothing is done to it here
  esac
}

: >"$PHASE_FILE"
start_agent "$PWD" "$formula Your very last action: echo PHASE:done > $PHASE_FILE"
monitor_phase_loop "$PHASE_FILE" "${CLAUDE_TIMEOUT:-7200}" formula_phase_callback || :
finish
