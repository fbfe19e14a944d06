# shellcheck shell=bash
# What the three example agents share: a session in tmux, its phase file, and words typed to it.
# Sourced. `SM` is where the clone of sm is; `AGENT` is the agent's command, which gets its prompt
# as the last argument.

SM=${SM:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
# shellcheck source=lib/agent-session.sh
source "$SM/lib/agent-session.sh"

AGENT=${AGENT:-claude}
# shellcheck disable=SC2034 # for the scripts that source this
MAX_RESTARTS=3 restarts=0

mux() { tmux ${SM_TMUX_SOCKET:+-L "$SM_TMUX_SOCKET"} "$@"; }

# start_agent FOLDER PROMPT: the agent in a new session $SESSION_NAME, with $PHASE_FILE in its
# environment. AGENT is words, so that it can have options.
start_agent() {
  local command
  read -ra command <<<"$AGENT"
  mux new-session -d -s "$SESSION_NAME" -c "$1" -e "PHASE_FILE=$PHASE_FILE" -- "${command[@]}" "$2"
}

# tell_agent TEXT: typed as one paste, then sent off.
tell_agent() {
  printf '%s' "$1" | mux load-buffer -b "$SESSION_NAME" -
  mux paste-buffer -d -p -b "$SESSION_NAME" -t "=$SESSION_NAME:"
  mux send-keys -t "=$SESSION_NAME:" Enter
}

end_session() { mux kill-session -t "=$SESSION_NAME" 2>/dev/null || :; }

read_reason() { sed -n '2s/^Reason: *//p' "$PHASE_FILE"; }

note() { printf '%s: %s\n' "$SESSION_NAME" "$*" >&2; }

# finish: what a loop's end means, after monitor_phase_loop. With idle_prompt and idle_timeout the
# session is gone. The phase file stays as the record of what was said, but for a job that is done.
finish() {
  case $_MONITOR_LOOP_EXIT in
  done) end_session && rm -f -- "$PHASE_FILE" && return 0 ;;
  PHASE:escalate) note "asks: $(sed -n 2p "$PHASE_FILE"); answer it with: tmux attach -t $SESSION_NAME" && return 2 ;;
  PHASE:failed) end_session && note "gave up: $(read_reason)" ;;
  idle_prompt) note "ended its turn without a phase" ;;
  idle_timeout) note "wrote no phase in time" ;;
  crashed) note "died again and again" ;;
  callback) note "a phase could not be dealt with" ;;
  esac
  return 1
}
