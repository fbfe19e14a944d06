# shellcheck shell=bash
# What all hooks of the agent CLI do first: read the payload, find the session, know whether the
# event is of the agent's current context, leave a sign of life. Sourced as
#
#   source common.sh EVENT [KEY]     the value of KEY goes into the line in `events`
#
# Returns 1 if there is nothing to do for this event. Sets these variables:
#
#   began                          when the hook did
#   dir                            the session's directory
#   payload, head                  what the client said, and its part before any free object
#   session, turn, agent, detail   the event's context, prompt, subagent (or empty), value of KEY
#   state since context prompt     what the file `state` says, `-` where it does not
#   present                        the context that is written down, `-` if none is known
#
# A hook never fails its agent: it ends with 0, prints only an answer for the client, and ignores
# problems of the state directory. Builtins only. Code that runs once is not in functions, because
# bash takes twice as long to define one as to read it.

# A file that is too large, and a client that has stopped listening, must not end the hook.
trap '' PIPE XFSZ
# A failed redirection would end the shell there.
set +o posix
# Bytes instead of characters, and a point in $EPOCHREALTIME.
LC_ALL=C
umask 077

# field KEY: REPLY is its value in $head, if that is a string of letters, digits and `_.:-`.
# A quote inside a JSON string is escaped, so `"key":` is a key.
field() {
  [[ $head =~ \"$1\":\ ?\"([A-Za-z0-9][A-Za-z0-9_.:-]*)\" ]] && REPLY=${BASH_REMATCH[1]}
}

# ours FILE: a plain file, or none yet. Opening a FIFO would wait; a device or a link leads away.
ours() { [[ ! -L $1 && (-f $1 && -O $1 || ! -e $1) ]]; }

# keep FILE TEXT: replaces a file of the session.
keep() { ours "$dir/$1" && printf '%s' "$2" >"$dir/$1"; }

# keep_line FILE LINE, keep_payload FILE: the same, but they overwrite the old content, and put blanks
# over the rest. So the file is never empty, needs no space on a full disk, and spares the flush
# of some file systems (ext4) after a truncation.
keep_line() { ours "$dir/$1" && printf '%-159s\n' "$2" 1<>"$dir/$1"; }

keep_payload() {
  ours "$dir/$1" || return 0
  REPLY=
  [[ ! -s $dir/$1 ]] || IFS= read -r -N 4096 REPLY <"$dir/$1"
  if ((${#REPLY} < 4096 && ${#payload} < 4096)); then
    printf '%-*s' "${#REPLY}" "$payload" 1<>"$dir/$1"
  else
    printf '%s' "$payload" >"$dir/$1"
  fi
}

# set_state STATE [PROMPT]: begins it now and wakes the monitor, unless it is the state already. Another
# prompt is another turn, which begins now: no hook tells of the end of one that was interrupted.
set_state() {
  local new_prompt=${2:-${turn:-$prompt}}
  if [[ $1 != "$state" || $present != "$context" || ($1 == busy && $new_prompt != "$prompt") ]]; then
    keep_line state "$1 $EPOCHREALTIME $present $new_prompt"
    poke
  elif [[ $new_prompt != "$prompt" ]]; then
    keep_line state "$1 $since $present $new_prompt"
  fi
}

# Opened for both directions, so that this works without a reader. If bytes are waiting already, one
# more might not fit.
poke() {
  [[ -p $dir/wake && ! -L $dir/wake ]] || return 0
  { read -r -t 0 -u 8 || printf '\n' >&8; } 8<>"$dir/wake"
}

record() {
  ours "$dir/events" && printf '%s %s %s %s\n' "$EPOCHREALTIME" "$1" "$present" "$2" >>"$dir/events"
}

# told_context: REPLY is the id of the context that SessionStart has told of last, `-` if none has.
told_context() {
  local head=''
  REPLY=-
  [[ -s $dir/context ]] && ours "$dir/context" || return 0
  IFS= read -r -N 1500 head <"$dir/context"
  field session_id || REPLY=-
}

# handover: sources the parts that need more than builtins, and only if there is something to hand
# over or to account for. An event over HTTP gets nothing, because the answer would not reach the agent.
handover() {
  [[ ${SM_HOOKS:-} != http ]] || return 1
  # shellcheck source=lib/hooks/handover.sh
  declare -F hand_over >/dev/null || source "${BASH_SOURCE[0]%/*}/handover.sh"
}

# shellcheck disable=SC2034 # what is said from now on, this hook cannot prove
began=$EPOCHREALTIME

# The payload. With -N bash reads in blocks; up to a newline or a NUL, or with a time limit, it would
# read byte by byte. /dev/stdin cannot be opened if it is a socket.
IFS= read -r -N 33554432 payload || :

# The session.
dir=${SM_SESSION_DIR:-}
if [[ -z $dir ]]; then
  [[ ${CLAUDE_SESSION_MANAGER_ID:-} == [A-Za-z0-9_]* ]] || return 1
  [[ $CLAUDE_SESSION_MANAGER_ID != *[!A-Za-z0-9._-]* ]] || return 1
  dir=${SM_STATE_ROOT:-/tmp}/sm-$EUID
  [[ -O $dir && ! -L $dir ]] || return 1
  dir=$dir/sessions/$CLAUDE_SESSION_MANAGER_ID
fi
dir=${dir%/}
[[ -d $dir && -O $dir && ! -L $dir ]] || return 1
# Hooks in a person's own settings do nothing in a session with settings from sm.
[[ ${SM_HOOKS:-} != user || ! -e $dir/settings.json ]] || return 1

# The event. The arguments of the agent's tools may have any key, so they are cut off.
head=${payload:0:1500}
[[ $head == *'"hook_event_name":'* ]] || head=${payload:0:20000}
[[ $head != *'"tool_input":'* ]] || head=${head%%'"tool_input":'*}
field session_id && ((${#REPLY} <= 60)) || return 1
session=$REPLY turn='' agent='' detail='-'
# Codex has another name for it.
if { field prompt_id || field turn_id; } && ((${#REPLY} <= 60)); then turn=$REPLY; fi
# shellcheck disable=SC2034 # the hooks read it
if field agent_id; then agent=$REPLY; fi
if [[ -n ${2:-} ]] && field "$2"; then detail=${REPLY:0:128}; fi

# The state. Another hook may be writing the file just now, so an unfinished line is read again.
state=- since=- context=- prompt=- REPLY=
for _ in 1 2 3; do
  [[ -f $dir/state && ! -L $dir/state ]] || break
  IFS= read -r -N 320 REPLY <"$dir/state" || :
  [[ $REPLY != *$'\n'* ]] || break
done
case ${REPLY%% *} in starting | idle | busy | waiting | dialog | limited | dead)
  REPLY=${REPLY%%$'\n'*}
  REPLY=${REPLY%%  *}
  REPLY=${REPLY% }
  if [[ $REPLY == *' '*' '*' '* && $REPLY != *[!\ A-Za-z0-9_.:-]* ]]; then
    state=${REPLY%% *} REPLY=${REPLY#* }
    since=${REPLY%% *} REPLY=${REPLY#* }
    context=${REPLY%% *} prompt=${REPLY#* }
  fi
  ;;
esac

# Hooks that a server runs, or that are in a person's own settings, may lack SessionStart. Then no
# event says when another context begins, so the id of an event is not taken for it.
present=$session
if [[ -n ${SM_HOOKS:-} && ($1 != SessionStart || $detail == compact) ]]; then
  told_context
  [[ $REPLY == "$context" ]] || context=-
  [[ $context != - || $REPLY == "$session" ]] || present=-
fi

# The context. SessionStart changes it, and has its own test; the status line is no event. An agent
# that has not begun yet cannot end: such an end belongs to the agent before it.
case $1 in
SessionStart) return 0 ;;
SessionEnd) [[ $session == "$context" ]] || detail=stale ;;
# A subagent's context is another one, though it has the same id.
PreCompact) [[ -z $agent && ($context == - || $session == "$context") ]] || detail=stale ;;
*) [[ $context == - || $session == "$context" ]] || detail=stale ;;
esac
[[ $1 == StatusLine ]] || record "$1" "$detail"

# The monitor. If it was killed, nobody looks after the agent, and this starts it again. It is known by
# the lock that it has open: another process may have its number by now.
if [[ -f $dir/monitor.pid && ! -L $dir/monitor.pid ]] && read -r REPLY <"$dir/monitor.pid" &&
  [[ ! /proc/$REPLY/fd/9 -ef $dir/monitor.lock ]]; then
  # shellcheck source=lib/hooks/watch.sh
  source "${BASH_SOURCE[0]%/*}/watch.sh"
  start_monitor
fi
[[ $detail != stale ]]
