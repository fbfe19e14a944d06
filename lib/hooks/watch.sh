# shellcheck shell=bash
# Starts the session's monitor again. common.sh sources it if there was one and its process is gone.
# shellcheck disable=SC2154 # dir is common.sh's

# Seconds between two tries: a monitor that cannot be started costs the agent's hooks no more.
AGAIN_S=5

# start_monitor: has sm start it, unless that was tried just now or the session is over. It outlives
# the hook. A hook that a server runs has not the agent's environment, and starts nothing.
start_monitor() {
  local asked=''
  [[ ${SM_HOOKS:-} != http && -d /proc/self && ! -e $dir/over ]] && ours "$dir/monitor.asked" || return 0
  [[ ! -s $dir/monitor.asked ]] || read -r asked <"$dir/monitor.asked"
  [[ $asked == [1-9]* && $asked != *[!0-9]* && ${#asked} -le 12 ]] || asked=0
  # A time to come is of a clock that was set back since.
  ((EPOCHSECONDS >= asked + AGAIN_S || EPOCHSECONDS < asked)) || return 0
  keep monitor.asked "$EPOCHSECONDS"$'\n'
  type -P sm setsid flock >/dev/null || return 0
  # Its process may be hidden from here, as by a sandbox; its lock is not.
  ours "$dir/monitor.lock" && flock -n -s "$dir/monitor.lock" true || return 0
  setsid -f sm watch "${dir##*/}" </dev/null >/dev/null 8>&- 9>&-
}
