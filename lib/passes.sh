# shellcheck shell=bash
# How a monitor has a pass of the reactor made: by the server of passes, which it starts if there is
# none, or by a child of its own. sm/passes/server.py has what is said through which FIFO.

# What a monitor keeps from one pass to the next: the FIFO of requests, where it is open for writing,
# and what a pass takes from us.
_requests='' _ask='' _caller=()

# ask_for_pass SESSION_DIR UMASK
#
# Has one pass of the reactor made, as a child of ours with that umask would make it. Returns its exit
# code, or 1 if nobody has told one.
ask_for_pass() {
  local dir=$1 mask=$2 ident=$BASHPID.$EPOCHREALTIME hold answer code=
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

# Opens the FIFO of requests for writing: $_ask. A write to it fails when no server reads.
_open_requests() {
  local private=${dir%/sessions/*} both
  _requests=$private/passes
  [[ -z $_ask || ! $_requests -ef /dev/fd/$_ask ]] || return 0
  [[ -z $_ask ]] || exec {_ask}>&-
  _ask=
  _ensure_fifo "$_requests" || return 1
  exec {both}<>"$_requests" || return 1
  exec {_ask}>"$_requests" {both}>&-
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
    if printf '%s\n' "$line" >&"$_ask"; then
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
  mapfile -d '' -t _caller < <(exec env -0 8>&- 9>&- {_ask}>&-)
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
  mapfile -t lines < <(exec readlink /proc/self/ns/{mnt,net,pid,user} 8>&- 9>&- {_ask}>&-)
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
