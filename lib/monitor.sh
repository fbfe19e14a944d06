# shellcheck shell=bash
# The monitor beside a session that sm drives: what it looks at each second, and when it has the
# reactor make a pass. How a pass is made is in passes.sh, which is to be sourced before.

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
  local dir=$1 turn='' mask
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
  # By it a hook sees that we were killed. Where it cannot be written, dev-poll alone sees that.
  [[ -p $dir/monitor.pid ]] || printf '%s\n' "$BASHPID" >"$dir/monitor.pid" || :
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

# Returns 1 when the session is over.
_run_reactor() {
  local status=0 pause
  verified=
  ask_for_pass "$dir" "$mask" || status=$?
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
