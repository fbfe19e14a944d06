# shellcheck shell=bash
# What all hooks of the agent CLI do first: read the payload, find the session, know whether the
# event is of the agent's current context, leave a sign of life. Sourced; builtins only.
#
# A hook never fails its agent: it ends with 0, says nothing but an answer for the client, and
# whatever is wrong with the state directory is passed over.

# Files larger than allowed, and a client that has stopped listening, are errors, no death.
trap '' PIPE XFSZ
set +o posix -o noglob
# Bytes instead of characters, and a point in $EPOCHREALTIME.
LC_ALL=C
umask 077

# hook_begin EVENT [KEY]: returns 1 where there is nothing to do for this event. Its line in
# `events` has the value of KEY. Sets what the hooks go by:
#   dir                            the session's directory
#   payload, head                  what the client said, and its part before any free object
#   session, turn, agent, detail   the event's context, prompt, subagent (or empty), value of KEY
#   state since context prompt     what the file `state` says, `-` where it does not
hook_begin() {
  read_payload
  find_session || return 1
  read_head "${2:-}" || return 1
  load_state
  if ! is_current "$1"; then
    record "$1" stale
    return 1
  fi
  record "$1" "${detail:--}"
}

# With -N in blocks; up to a newline or a NUL, or with a time limit, it would be byte by byte.
# /dev/stdin cannot be opened where it is a socket.
read_payload() { IFS= read -r -N 33554432 payload || :; }

find_session() {
  local id=${CLAUDE_SESSION_MANAGER_ID:-} private
  dir=${SM_SESSION_DIR:-}
  dir=${dir%/}
  if [[ -z $dir ]]; then
    [[ $id == [A-Za-z0-9_]* && $id != *[!A-Za-z0-9._-]* ]] || return 1
    private=${SM_STATE_ROOT:-/tmp}/sm-$EUID
    [[ -O $private && ! -L $private ]] || return 1
    dir=$private/sessions/$id
  fi
  [[ -d $dir && -O $dir && ! -L $dir ]] || return 1
  # Hooks in a person's own settings leave a session alone that was given its settings by sm.
  [[ ${SM_HOOKS:-} != user || ! -e $dir/settings.json ]]
}

# A quote inside a JSON string is escaped, so `"key":` is a key. What the agent's tools are called
# with may have any key, so that is cut off.
read_head() {
  head=${payload:0:1500}
  [[ $head == *'"hook_event_name":'* ]] || head=${payload:0:20000}
  [[ $head != *'"tool_input":'* ]] || head=${head%%'"tool_input":'*}
  field session_id || return 1
  session=$REPLY turn='' agent='' detail=''
  if field prompt_id; then turn=$REPLY; fi
  # shellcheck disable=SC2034 # read by the hooks
  if field agent_id; then agent=$REPLY; fi
  if [[ -n $1 ]] && field "$1"; then detail=$REPLY; fi
}

# field KEY: REPLY is its value in $head, where that is a string of letters, digits and `_.:-`.
field() {
  REPLY=
  [[ $head == *"\"$1\":"* ]] || return 1
  local before=${head%%"\"$1\":"*}
  REPLY=${head:${#before}+${#1}+3:160}
  REPLY=${REPLY#"${REPLY%%[![:space:]]*}"}
  [[ $REPLY == '"'* ]] || REPLY='"'
  REPLY=${REPLY:1}
  REPLY=${REPLY%%'"'*}
  [[ $REPLY == [A-Za-z0-9]* && $REPLY != *[!A-Za-z0-9_.:-]* && ${#REPLY} -le 128 ]]
}

# ours FILE: a plain file, or none yet. Opening a FIFO would wait, a device or a link lead away.
ours() { [[ -f $1 && -O $1 && ! -L $1 || ! -e $1 && ! -L $1 ]]; }

# keep FILE TEXT: replaces a file of the session.
keep() { ours "$dir/$1" && printf '%s' "$2" >"$dir/$1"; }

# keep_line FILE LINE: the same for a line whose length is known, written over the old one: it is
# never seen empty, needs no space on a full disk, and spares what some file systems do (ext4: a
# flush) when a file is cut.
keep_line() { ours "$1" && printf '%s\n' "$2" 1<>"$1"; }

record() {
  ours "$dir/events" && printf '%s %s %s %s\n' "$EPOCHREALTIME" "$1" "$session" "$2" >>"$dir/events"
}

# Another hook may be writing it just now, so an unfinished line is read again.
load_state() {
  local text='' _
  state=- since=- context=- prompt=-
  [[ -f $dir/state && ! -L $dir/state ]] || return 0
  for _ in 1 2 3; do
    IFS= read -r -N 320 text <"$dir/state" || :
    [[ $text != *$'\n'* ]] || break
  done
  text=${text%%$'\n'*} text=${text%%  *}
  case ${text%% *} in starting | idle | busy | waiting | dialog | limited | dead) ;; *) return 0 ;; esac
  [[ $text == *' '*' '*' '* && $text != *[!\ A-Za-z0-9_.:-]* ]] || return 0
  state=${text%% *} text=${text#* }
  since=${text%% *} text=${text#* }
  context=${text%% *}
  prompt=${text#* }
}

# SessionStart is what changes the context, and has a test of its own. An agent that has not
# begun yet cannot end: that is the one before it.
is_current() {
  case $1 in
  SessionStart) return 0 ;;
  SessionEnd) [[ $session == "$context" ]] ;;
  *) [[ $context == - || $session == "$context" ]] ;;
  esac
}

# set_state STATE [PROMPT]: keeps the time where nothing but the prompt is new, wakes the monitor
# where more is.
set_state() {
  local new_prompt=${2:-${turn:-$prompt}}
  if [[ $1 != "$state" || $session != "$context" ]]; then
    keep_state "$1 $EPOCHREALTIME $session ${new_prompt:--}"
    state=$1
    poke
  elif [[ $new_prompt != "$prompt" ]]; then
    keep_state "$1 $since $session $new_prompt"
  fi
}

# With blanks up to a width that holds all ids.
keep_state() {
  local line
  printf -v line '%-159s' "$1"
  keep_line "$dir/state" "$line"
}

# Opened for both directions, so that nobody has to read; where bytes wait already, one more could
# be the one that no longer fits.
poke() {
  [[ -p $dir/wake && ! -L $dir/wake ]] || return 0
  { read -r -t 0 -u 8 || printf '\n' >&8; } 8<>"$dir/wake"
}

# idle_marker: REPLY is the protocol's file for an agent that has finished a response.
idle_marker() { REPLY=${dir%/*/*/*}/claude-idle-${dir##*/}.ts; }

# prove: what an earlier hook handed out was accepted, if this event is of the same turn.
prove() {
  [[ -s $dir/offered ]] || return 0
  load_part && accept_offered
}

# The parts that need more than builtins are read when they are needed.
load_part() {
  # shellcheck source=lib/hooks/handover.sh
  declare -F accept_offered >/dev/null || source "${BASH_SOURCE[0]%/*}/handover.sh"
}
