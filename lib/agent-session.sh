# shellcheck shell=bash
# Watching an agent: read_phase and monitor_phase_loop for scripts that drive a session by the
# phase protocol themselves, agent_session_monitor for the sessions that sm drives.
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
# While a person is attached who could type, or for ten minutes after their last key, the session is
# not killed.
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

# Whether a person is attached who could type, or has typed within ten minutes and gone: with the
# facts of tmux that sm/adapters/viewers.py explains.
_monitor_attended() {
  local said activity attached
  said=$(_monitor_tmux list-clients -t "=$_MONITOR_SESSION" -F '#{client_readonly}') || return 1
  [[ $said != *0* ]] || return 0
  [[ -z $said ]] || return 1
  said=$(_monitor_tmux display-message -p -t "=$_MONITOR_SESSION:" \
    '#{session_activity} #{session_last_attached}') || return 1
  read -r activity attached <<<"$said"
  [[ $activity == [1-9]* && $attached == [1-9]* ]] &&
    ((activity > attached + 1 && EPOCHSECONDS < activity + 600))
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

# agent_session_monitor SESSION_DIR
#
# Stays beside a session that sm drives and asks for a pass of the reactor whenever there may be
# something to react to: a watched file changed, appeared or vanished; the time in `next` has come;
# the agent's process is gone; the terminal shows something new while `screen` says that this
# decides; a look at the forge is due and no other monitor takes it; a byte came into the FIFO `wake`;
# and once as it begins, because it could not be woken before. Looks every second by builtins alone.
# Ends with 0 when the session's directory is gone or says that the session is `over`, or at once
# when it has a monitor already.
# Needs SM_PYTHON, and SM_CONFIG as any command does. What it and its reactors say goes to monitor.log.
agent_session_monitor() {
  local dir=$1 turn='' mask ask='' _requests='' _caller=()
  local due=yes failures=0 not_before=0 next_unset=0 drawing=0
  local verified='' gone='' gone_handled=''
  local -A existed=()
  [[ -d $dir && -O $dir && ! -L $dir ]] || return 0
  # Its own files are private, whatever the caller's umask is. Its children get that umask back.
  mask=$(umask)
  umask 077
  # A FIFO in a file's place would hold us for ever as we open it. So we ask before, here and later.
  [[ ! -p $dir/monitor.lock && ! -p $dir/monitor.log ]] || return 1
  # Fixed numbers, because only those can be closed for a single command.
  exec 9>>"$dir/monitor.lock"
  # 1: the lock is held. A process that only asks for a monitor shares it for a moment; another
  # monitor does not.
  until flock -w 0.2 9; do
    (($? == 1)) || return 1
    flock -n -s 9 || return 0
  done
  exec >>"$dir/monitor.log" 2>&1 </dev/null
  # It is no failure if the directory has gone meanwhile.
  [[ -p $dir/wake ]] || mkfifo -m 600 -- "$dir/wake" || [[ ! -d $dir ]] || return 1
  if ! exec 8<>"$dir/wake"; then
    [[ ! -d $dir ]]
    return
  fi
  # From here on a file may be gone at any moment. A message for each would cost the most.
  exec 2>/dev/null
  # A write to a killed server is an error, not the end. Children have the default again.
  trap : PIPE
  # The lock is compared, too: a directory made anew under the same name has its own monitor.
  while [[ $dir/monitor.lock -ef /dev/fd/9 ]]; do
    _look_at_files
    _look_at_clock
    _look_at_agent
    _look_at_screen
    _look_at_forge
    [[ -z $due ]] || ((EPOCHSECONDS < not_before)) || _run_reactor || break
    _sleep_until_woken
  done
}

# Sleeps for a second, or until a byte comes into the FIFO. The byte decides, not the status of read:
# if the byte comes at the end of the second, read takes it and still reports a timeout.
_sleep_until_woken() {
  local REPLY=
  read -r -d '' -n 1 -t 1 -u 8 || [[ -n $REPLY ]] || return 0
  due=yes
  while read -t 0 -u 8; do read -r -t 0.01 -N 4096 -u 8 || :; done
}

# A file as old as the stamp may have been written after it, within one tick of the kernel's clock.
_look_at_files() {
  local paths=() path exists
  [[ -p $dir/watch ]] || mapfile -t paths <"$dir/watch" || :
  for path in "${paths[@]}"; do
    [[ -n $path ]] || continue
    exists=no
    if [[ -e $path ]]; then
      exists=yes
      [[ $path -ot $dir/seen ]] || due=yes
    fi
    [[ ${existed[$path]:-$exists} == "$exists" ]] || due=yes
    existed[$path]=$exists
  done
  # A file moved into place, or written after the clock was set back, can be older than the stamp.
  path=${paths[0]:-}
  if [[ -e $path && -e $dir/phase.seen ]]; then
    [[ ! $path -nt $dir/phase.seen && ! $path -ot $dir/phase.seen ]] || due=yes
  fi
}

# While a person is at the terminal, the screen decides: its log is newer than the last pass. A log
# that changes without a pause is looked at only every fifth second.
_look_at_screen() {
  local log=
  [[ ! -s $dir/screen ]] || read -r log <"$dir/screen" || :
  if [[ -n $log && $log -nt $dir/seen ]]; then
    drawing=$((drawing + 1))
    ((drawing > 5 && drawing % 5)) || due=yes
  else
    drawing=0
  fi
}

# One monitor asks the forge for all sessions of a project: the first one that sees that it is due,
# or has changed. It takes the turn by creating a file, which only one can. The reactor that it
# runs removes the file, and writes the next time into `due`.
_look_at_forge() {
  local shared=() next=
  [[ ! -p $dir/shared ]] || return 0
  mapfile -t shared <"$dir/shared" || return 0
  ((${#shared[@]} == 2)) || return 0
  [[ ! -p ${shared[0]}/due ]] || return 0
  read -r next <"${shared[0]}/due" || return 0
  ((EPOCHSECONDS >= 10#$next)) || [[ ${shared[1]} -nt ${shared[0]}/forge.json ]] || return 0
  [[ ! -p ${shared[0]}/turn ]] || return 0
  set -o noclobber
  { : >"${shared[0]}/turn"; } 2>/dev/null && due=yes turn=${shared[0]}/turn
  set +o noclobber
}

# Without a time, ask the reactor for one, but not over and over.
_look_at_clock() {
  local next=
  [[ -p $dir/next ]] || read -r next <"$dir/next" || :
  [[ -n $next && $next != *[!0-9]* && ${#next} -le 12 ]] || next=$next_unset
  ((EPOCHSECONDS < 10#$next)) || due=yes
}

_VERIFY_S=30 # how often the agent's start time and state are compared again

# Due once for each agent that is gone. The clock decides about everything later.
# A regular expression at each look would double its cost. So most looks only ask whether there is
# a process of that number, which a dead one that nobody has collected and its successor have, too.
_look_at_agent() {
  local agent='' client=''
  gone=
  ((EPOCHSECONDS % _VERIFY_S)) || verified=
  [[ -p $dir/agent.pid ]] || read -r agent <"$dir/agent.pid" || :
  [[ -n $agent ]] || return 0
  if [[ $agent == "$verified" && -d /proc/${agent% *} ]]; then
    :
  elif _process_alive "${agent% *}" "${agent#* }"; then
    verified=$agent
  else
    gone=$agent
  fi
  # If the agent is a script around its client, the client may end and leave a shell.
  [[ ! -s $dir/client ]] || read -r client <"$dir/client" || :
  if [[ $client == [1-9]* && ! -d /proc/$client && -d /proc/self ]]; then gone="$agent $client"; fi
  [[ -z $gone || $gone == "$gone_handled" ]] || due=yes
}

# _process_alive PID STARTTICKS: whether that very process is running. In its stat the name, in
# parentheses, may hold anything; behind it are the state (field 3) … and the start (field 22).
_process_alive() {
  local lines=() fields='^([^ ]+) ([^ ]+ ){18}([0-9]+)( |$)'
  if [[ ! -d /proc/self ]]; then
    kill -0 "$1"
    return
  fi
  mapfile -t lines <"/proc/$1/stat" || return 1
  [[ ${lines[*]##*) } =~ $fields && ${BASH_REMATCH[1]} != [ZX] && ${BASH_REMATCH[3]} == "$2" ]]
}

# One pass of the reactor; returns its exit code, or 1 if nobody has told one. The server of passes
# makes it: sm/passes/server.py, which also says what is said through which FIFO.
_ask_for_pass() {
  local ident=$BASHPID.$EPOCHREALTIME hold answer code=
  # A FIFO opened for both directions is open at once. Held so until the server has opened its end,
  # it has no end of its own; afterwards it ends when the server is killed.
  if ! { _open_requests && _ensure_fifo "$dir/pass.answer" && _ensure_fifo "$dir/pass.caller" &&
    exec {hold}<>"$dir/pass.answer" && exec {answer}<"$dir/pass.answer"; }; then
    _make_pass_alone
    return
  fi
  if _await_server; then
    exec {hold}>&-
    _tell_caller
    _read_answer || code=1
  fi
  exec {hold}>&- {answer}<&-
  if [[ $code == "$_ELSEWHERE" ]]; then
    _make_pass_alone
    return
  fi
  return "${code:-1}"
}

_ELSEWHERE=199 # the server cannot make a pass as a child of ours would

# Opens the FIFO of requests for writing: $ask. A write to it fails when no server reads.
_open_requests() {
  local private=${dir%/sessions/*} both
  _requests=$private/passes
  [[ -z $ask || ! $_requests -ef /dev/fd/$ask ]] || return 0
  [[ -z $ask ]] || exec {ask}>&-
  ask=
  _ensure_fifo "$_requests" || return 1
  exec {both}<>"$_requests" || return 1
  exec {ask}>"$_requests" {both}>&-
  _describe_caller
}

# A FIFO of ours at $1; another monitor may make it at the same moment.
_ensure_fifo() {
  [[ -p $1 ]] || mkfifo -m 600 -- "$1" || [[ -p $1 ]] || return 1
  [[ -O $1 && ! -L $1 ]]
}

# Asks until a server has taken the request up; starts one if there is none. In most seconds a blank
# line only asks whether somebody reads. The request, which a server that was killed may have taken
# with it, is repeated now and then; it counts once.
_await_server() {
  local half='' line='' asked=-5 started='' until=$((SECONDS + _AWAIT_S))
  while ((SECONDS < until)); do
    if ((SECONDS - asked >= 5)); then line="${dir##*/} $ident"; else line=; fi
    if printf '%s\n' "$line" >&"$ask"; then
      [[ -z $line ]] || asked=$SECONDS
      _hear_server 1 && return
    elif [[ -n $started ]]; then
      return 1
    else
      asked=-5
      if _start_server; then started=yes; else _hear_server 0.1 && return; fi
    fi
    [[ -d $dir ]] || return 1
  done
  return 1
}

_AWAIT_S=60

# Whether the server says within $1 seconds that it has taken the request up. A line that comes just
# as the time is over is read by halves: read takes some of it and reports a timeout (seen with bash
# 5.2). The rest comes at the next call: $half is what there is so far. The end of the line may be
# all that is missing; then it is read as an empty line later.
_hear_server() {
  local REPLY='' whole=yes
  read -r -t "$1" -u "$answer" || whole=
  half+=$REPLY
  [[ $half != "$ident" ]] || return 0
  [[ -z $whole ]] || half=
  return 1
}

# The exit code that the server tells: $code. Lines that answer a request of before are none.
_read_answer() {
  local REPLY
  while read -r -u "$answer"; do
    code=${REPLY#"$ident "}
    [[ $code == "$REPLY" || $code != [0-9]* ]] || return 0
  done
  return 1
}

# Starts the server, unless another monitor does so; it holds the lock from here on. Returns 1 if
# the lock is taken. Nothing of our environment that may be secret goes with it.
_start_server() {
  (
    exec 9<>"$_requests.lock" && flock -n 9 && exec 8<>"$_requests" || exit 1
    local name kept=()
    for name in PATH HOME LANG LC_ALL LC_CTYPE LD_LIBRARY_PATH SM_PYTHON; do
      [[ -z ${!name:-} ]] || kept+=("$name=${!name}")
    done
    env -i "${kept[@]}" SM_STATE_ROOT="${_requests%/*/passes}" "$SM_PYTHON" -Im sm react-server \
      <&8 2>&1 8>&- &
  )
}

# What a pass takes from us: $_caller.
_describe_caller() {
  _describe_limits
  mapfile -d '' -t _caller < <(exec env -0 8>&- 9>&- {ask}>&-)
  _caller=("$mask" "$PWD" "$SM_PYTHON" "$REPLY" "${_caller[@]}")
}

# What the kernel lets us do and see: REPLY. As describe_limits in sm/passes/fork.py has it.
_describe_limits() {
  local line lines=() found=()
  mapfile -t lines </proc/self/status || :
  for line in "${lines[@]}"; do
    case $line in
    Groups:* | CapEff:* | NoNewPrivs:* | Seccomp:* | Seccomp_filters:*)
      found+=("${line%"${line##*[![:space:]]}"}")
      ;;
    esac
  done
  mapfile -t lines < <(exec readlink /proc/self/ns/{mnt,net,pid,user} 8>&- 9>&- {ask}>&-)
  printf -v REPLY '%s\n' "${found[@]}" "${lines[@]}"
  REPLY=${REPLY%$'\n'}
}

# Tells a pass what it needs of us. Opened for writing alone, the FIFO has no reader, and the write
# fails, once the pass was killed. Nothing of it is written to a disk.
_tell_caller() {
  local both to
  exec {both}<>"$dir/pass.caller" && exec {to}>"$dir/pass.caller" || return 0
  exec {both}>&-
  printf '%s\0' "$ident" "${_caller[@]}" "$ident" >&"$to" || :
  exec {to}>&-
}

# One pass without the server.
_make_pass_alone() (
  umask "$mask" && exec "$SM_PYTHON" -Im sm react "${dir##*/}" 2>&1 8>&- 9>&-
)

# Returns 1 when the session is over.
_run_reactor() {
  local status=0 pause
  verified=
  _ask_for_pass || status=$?
  # A session that has just gone has not looked at the forge: another one takes the turn.
  [[ -z $turn || -d $dir ]] || rm -f -- "$turn"
  turn=
  [[ ! -e $dir/over ]] || return 1
  if ((status == 0)); then
    due='' failures=0 not_before=0 gone_handled=$gone next_unset=$((EPOCHSECONDS + 60))
    return
  fi
  # Still due. 1, 2, 4 … 60 seconds.
  pause=$((failures < 6 ? 1 << failures : 60))
  failures=$((failures + 1)) not_before=$((EPOCHSECONDS + pause))
  # A full disk prevents this write, and that is no reason to end.
  printf 'monitor: the reactor failed (%d), trying again in %d s\n' "$status" "$pause" || :
}
