# shellcheck shell=bash
# Watching an agent by its phase file: read_phase and monitor_phase_loop, for scripts that drive a
# session by the phase protocol themselves. What sm runs beside its own sessions is in monitor.sh.
# Sourced, also on its own; works under `set -euo pipefail`; bash 5.1 or newer.

# read_phase FILE: prints the sentinel, which is the first line without its white space; nothing
# for an empty or missing file. Returns 1, printing nothing, for a file that no agent of ours wrote:
# a link, a FIFO, a directory, another user's file, a file that others may write or that has a second
# name, a line with anything but printable ASCII.
read_phase() {
  local REPLY
  _read_phase "$1" || return 1
  [[ -z $REPLY ]] || _is_ours_alone "$1" || return 1
  printf '%s\n' "$REPLY"
}

# Whether others could write FILE: by its mode, or because it has a second name there. This starts
# a process, so the loop asks only about a phase that it has not handled yet.
_is_ours_alone() {
  local names mode owner group
  read -r names mode owner group < <(stat -c '%h %a %U %G' -- "$1" 2>/dev/null) || return 1
  ((names == 1 && (8#$mode & 8#002) == 0)) || return 1
  (((8#$mode & 8#020) == 0)) || _is_own_group "$owner" "$group"
}

# Whether nobody else is in the group, which has its user's name then: with umask 002, a login default,
# all that is created is writable for it.
_is_own_group() {
  local members
  [[ $1 == "$2" ]] && IFS=: read -r _ _ _ members < <(getent group "$2") || return 1
  [[ -z $members || $members == "$1" ]]
}

# Checks FILE without a process, and leaves the sentinel in REPLY. It reads at most 4096 bytes. The
# delimiter is NUL, because read would skip any number of NULs otherwise. A line ends where sm sees
# its end, too: at CR, VT, FF, the separators and Unicode's line breaks.
_read_phase() {
  local line='' size=4096 end LC_ALL=C
  REPLY=
  [[ -e $1 || -L $1 ]] || return 0
  [[ -f $1 && -O $1 && ! -L $1 ]] || return 1
  # It was removed meanwhile.
  if { IFS= read -r -d '' -n "$size" line <"$1"; } 2>/dev/null; then
    [[ $line == *$'\n'* || ${#line} -eq $size ]] || return 1
  fi
  line=${line%%$'\n'*}
  if [[ $line == *[!!-~]* ]]; then
    for end in $'[\r\v\f\x1c-\x1e]' $'\xc2\x85' $'\xe2\x80[\xa8\xa9]'; do
      # shellcheck disable=SC2295 # a pattern
      line=${line%%$end*}
    done
    line=${line//[[:space:]]/}
    [[ $line != *[!!-~]* ]] || return 1
  fi
  REPLY=$line
}

# monitor_phase_loop PHASE_FILE IDLE_TIMEOUT CALLBACK [SESSION]
#
# Watches a tmux session (default: $SESSION_NAME) through its phase file until the end, looking
# every $PHASE_POLL_INTERVAL seconds (default 10, fractions allowed). Every write of the file,
# the same phase again included, is one call `CALLBACK PHASE`; what was written before the loop
# began counts as one. A session found dead is one call `CALLBACK PHASE:crashed`: if the callback
# brings it back, the loop goes on. $_MONITOR_SESSION is the session's name.
#
# How it ended is in $_MONITOR_LOOP_EXIT, set before the last call of the callback:
#
#   done            PHASE:done was written
#   PHASE:failed    that was written
#   PHASE:escalate  that was written; the session is alive
#   idle_timeout    no phase for IDLE_TIMEOUT seconds; the session was killed, no callback
#   idle_prompt     phase file empty and the agent idle at three looks running; the session was
#                   killed, then the callback called with PHASE:failed: it must not use the session
#   crashed         the session was dead and the callback did not bring it back: returns 1
#   callback        the callback returned non-zero for a phase that ends nothing: returns 1
#
# While a person is attached who could type, and for five seconds after the last key of one who has
# left, the session is not killed.
#
# Time spent in the callback counts for no timeout, and a failing command in it does not end the
# script. $SM_TMUX_SOCKET names another tmux server, $SM_STATE_ROOT the folder of the idle marker
# (default /tmp). Returns 2 for arguments that cannot be used.
monitor_phase_loop() {
  local REPLY _stamp _pause _status=0
  # All that the looks share, under one name, so that no callback overwrites it by accident.
  local -A _loop=([file]=$1 [callback]=$3 [interval]=${PHASE_POLL_INTERVAL:-10} [looks]=0)
  export _MONITOR_SESSION=${4:-${SESSION_NAME:-}}
  _MONITOR_LOOP_EXIT=
  _monitor_check_arguments "$2" || return 2
  # A file without a name keeps the time of the last handled write. The loop sleeps by reading a pipe
  # without a writer. Both go with the shell, however it ends.
  _monitor_unnamed_file || return 2
  exec {_pause}<> <(:)
  _loop[stamp]=/dev/fd/$_stamp
  _monitor_restart_timers
  while :; do
    _monitor_look || break
    read -r -t "${_loop[interval]}" -u "$_pause" || :
  done
  exec {_stamp}>&- {_pause}>&-
  [[ $_MONITOR_LOOP_EXIT != crashed && $_MONITOR_LOOP_EXIT != callback ]]
}

_monitor_check_arguments() {
  local problem=
  if ! _monitor_microseconds "$1"; then problem="'$1' is no number of seconds"; fi
  _loop[timeout]=$REPLY
  if ! _monitor_microseconds "${_loop[interval]}"; then
    problem="PHASE_POLL_INTERVAL '${_loop[interval]}' is no number of seconds"
  fi
  [[ -n $_MONITOR_SESSION ]] || problem="no session is given, and SESSION_NAME is empty"
  type "${_loop[callback]}" &>/dev/null || problem="there is no callback '${_loop[callback]}'"
  [[ -n $problem ]] || return 0
  printf 'monitor_phase_loop: %s\n' "$problem" >&2
  return 1
}

# One look; returns 1 when the loop is over.
_monitor_look() {
  if ! _monitor_alive && ! _monitor_has_ended; then
    _MONITOR_LOOP_EXIT=crashed
    _monitor_await_server
    "${_loop[callback]}" PHASE:crashed || :
    _monitor_alive || return 1
    _MONITOR_LOOP_EXIT=
    _monitor_restart_timers
  elif _monitor_new_write; then
    _monitor_react
  else
    _monitor_idle
  fi
}

# Comes after the look at the session, so that the last phase of an agent that has just ended counts.
_monitor_has_ended() {
  _read_phase "${_loop[file]}" && _is_ours_alone "${_loop[file]}" || return 1
  [[ $REPLY == PHASE:done || $REPLY == PHASE:failed || $REPLY == PHASE:escalate ]]
}

# Whether there is a phase that was not handled yet. It keeps the time first, then reads the text:
# a write in between is a new one at the next look.
_monitor_new_write() {
  local file=${_loop[file]} stamp=${_loop[stamp]}
  _monitor_phase
  [[ -n ${_loop[phase]} ]] || return 1
  [[ ${_loop[phase]} != "${_loop[handled]:-}" || $file -nt $stamp || $file -ot $stamp ]] || return 1
  if ! _is_ours_alone "$file"; then
    _monitor_refuse
    return 1
  fi
  touch -c -r "$file" "$stamp" 2>/dev/null || return 1
  _monitor_phase
  _loop[handled]=${_loop[phase]}
  [[ -n ${_loop[phase]} ]]
}

_monitor_phase() {
  _read_phase "${_loop[file]}" || _monitor_refuse
  _loop[phase]=$REPLY
}

_monitor_refuse() {
  [[ -z ${_loop[refused]:-} ]] || return 0
  printf "monitor_phase_loop: '%s' is no phase file of ours: remove it\n" \
    "${_loop[file]//[[:cntrl:]]/ }" >&2
  _loop[refused]=yes
}

_monitor_react() {
  local failed=
  case ${_loop[phase]} in
  PHASE:done) _MONITOR_LOOP_EXIT="done" ;;
  PHASE:failed | PHASE:escalate) _MONITOR_LOOP_EXIT=${_loop[phase]} ;;
  esac
  "${_loop[callback]}" "${_loop[phase]}" || failed=yes
  [[ -z $failed ]] || : "${_MONITOR_LOOP_EXIT:=callback}"
  _monitor_restart_timers
  [[ -z $_MONITOR_LOOP_EXIT ]]
}

_monitor_idle() {
  local marker=${SM_STATE_ROOT:-/tmp}/claude-idle-$_MONITOR_SESSION.ts
  _loop[looks]=$((_loop[looks] + 1))
  [[ -z ${_loop[phase]} && -z ${_loop[refused]:-} && -f $marker && -O $marker ]] || _loop[looks]=0
  if ((_loop[looks] < 3 && ${EPOCHREALTIME//[!0-9]/} - _loop[since] < _loop[timeout])); then
    return 0
  fi
  # It is this loop's own judgement, and nobody who sits there shares it.
  if _monitor_attended; then return 0; fi
  if ((_loop[looks] >= 3)); then
    _MONITOR_LOOP_EXIT=idle_prompt
    _monitor_kill
    "${_loop[callback]}" PHASE:failed || :
  else
    _MONITOR_LOOP_EXIT=idle_timeout
    _monitor_kill
  fi
  return 1
}

# Whether a person is attached who could type, or has typed within five seconds and gone: with the
# facts of tmux that sm/adapters/viewers.py explains.
_monitor_attended() {
  local said activity attached looked
  said=$(_monitor_tmux list-clients -t "=$_MONITOR_SESSION" -F '#{client_readonly}') || return 1
  [[ $said != *0* ]] || return 0
  [[ -z $said ]] || return 1
  said=$(_monitor_tmux display-message -p -t "=$_MONITOR_SESSION:" \
    '#{session_activity} #{session_last_attached} #{@sm_looked_at}') || return 1
  read -r activity attached looked <<<"$said"
  [[ $activity == [1-9]* && $attached == [1-9]* && $activity != "$looked" ]] &&
    ((activity > attached + 1 && EPOCHSECONDS < activity + 5))
}

_monitor_restart_timers() {
  _loop[since]=${EPOCHREALTIME//[!0-9]/}
  _loop[looks]=0
}

# What tmux complains of comes on standard output. A name less its last letter is that command, and
# never an alias that a person has given the name (command-alias).
_monitor_tmux() { tmux ${SM_TMUX_SOCKET:+-L "$SM_TMUX_SOCKET"} "${1%?}" "${@:2}" 2>&1; }

_monitor_alive() { _monitor_tmux has-session -t "=$_MONITOR_SESSION" >/dev/null; }

# A tmux server ends when its last session has, and refuses in that moment what would bring the
# session back. So this waits until there is no server, or one that has other sessions: at most two
# seconds, as an empty server may stay.
_monitor_await_server() {
  local tries=40 said
  while ((tries--)); do
    ! said=$(_monitor_tmux has-session) || return 0
    [[ $said != *'no server running'* && $said != *'No such file'* ]] || return 0
    read -r -t 0.05 -u "$_pause" || :
  done
}

_monitor_kill() { _monitor_tmux kill-session -t "=$_MONITOR_SESSION" >/dev/null || :; }

# REPLY: the seconds $1, a decimal number, as microseconds.
_monitor_microseconds() {
  REPLY=0
  [[ $1 =~ ^([0-9]*)(\.([0-9]*))?$ && $1 == *[0-9]* ]] || return 1
  local fraction=${BASH_REMATCH[3]}000000
  REPLY=$((10#0${BASH_REMATCH[1]} * 1000000 + 10#${fraction:0:6}))
}

# Opens an empty file that has no name any more: $_stamp.
_monitor_unnamed_file() {
  local file
  file=$(mktemp) && exec {_stamp}>"$file" && rm -f -- "$file"
}
