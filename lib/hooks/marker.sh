# shellcheck shell=bash
# The idle marker of a session that a script drives itself, around monitor_phase_loop. sm does not
# know the session, so only its name counts. Hooks that found no session of sm source this.

# find_marker: REPLY is the file that monitor_phase_loop looks for. Returns 1 in a session of sm,
# whose own hooks do this, and if no name is known.
find_marker() {
  [[ ${SM_HOOKS:-} == user && -z ${SM_SESSION_DIR:-}${CLAUDE_SESSION_MANAGER_ID:-} ]] || return 1
  REPLY=${SESSION_NAME:-}
  if [[ -z $REPLY && -n ${TMUX_PANE:-} ]]; then
    REPLY=$(tmux display-message -p -t "$TMUX_PANE" '#{session_name}')
  fi
  [[ -n $REPLY && $REPLY != */* && ${#REPLY} -le 200 ]] || return 1
  REPLY=${SM_STATE_ROOT:-/tmp}/claude-idle-$REPLY.ts
}

# remove_marker: the agent is at work. Without any marker no process is started.
remove_marker() {
  local markers=("${SM_STATE_ROOT:-/tmp}"/claude-idle-*.ts)
  [[ -e ${markers[0]} ]] && find_marker || return 0
  [[ ! -f $REPLY || ! -O $REPLY ]] || rm -f -- "$REPLY"
}
