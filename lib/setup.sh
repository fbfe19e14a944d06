# shellcheck shell=bash disable=SC2154
# Makes a fresh clone usable: its Python environment in .venv, and the programs that it calls.
# Sourced after common.sh, which says where the clone is (sm_root).

# sm_setup [test]: sets the clone up, with the tools of the checks if `test` is given. It returns at
# once if that was done already, and 1 after it has said what is missing or went wrong.
# One process works on a clone at a time; the others wait and find it done. The lock is on the root
# itself, so no lock file is left. pip keeps the lock, too, if this shell is killed.
sm_setup() (
  set +eu
  [[ -f $sm_root/setup.cfg ]] || {
    log "'$sm_root' is no clone: set SM_PYTHON to the Python that sm is installed in"
    exit 1
  }
  _require_own_clone || exit
  exec 9<"$sm_root" </dev/null
  flock -n 9 || { log "another set-up is running: waiting for it" && flock 9; } || exit
  sm_is_current "sm-setup${1:+-$1}" || _set_up "$@"
)

# An environment that this user cannot run may belong to another user who can. It stays as it is.
_require_own_clone() {
  local venv=$sm_root/.venv
  local advice="make a clone of your own, or set SM_PYTHON to a Python that has sm"
  if [[ (-e $venv || -L $venv) && ! (-O $venv && -w $venv) ]]; then
    log "'$venv' is another user's, and cannot be used as it is: $advice"
    return 1
  elif [[ ! -w $sm_root ]]; then
    log "cannot make '$venv': you may not write in '$sm_root': $advice"
    return 1
  fi
}

# The stamp is written as setup.begun before anything else, and renamed when all is done. So a later
# change of setup.cfg is newer than the stamp, and a killed set-up is noticed.
_set_up() {
  local venv=$sm_root/.venv begun=$sm_root/.venv/setup.begun stamp=$sm_root/.venv/sm-setup${1:+-$1}
  _require_programs || return
  ! _restamp "$stamp" || return 0
  log "setting up (once): $venv"
  # Without pyvenv.cfg its Python is the one that it was made with, and pip would install there.
  if [[ -e $begun || ! -e $venv/pyvenv.cfg ]] || ! "$venv/bin/python" -Ic 'import pip' 2>/dev/null; then
    rm -rf -- "$venv"
  fi
  mkdir -p -- "$venv" && _stamp_text >"$begun" || return
  if ! _install "$venv" "$@" >"$venv/setup.log" 2>&1; then
    rm -f -- "$begun"
    tail -n 15 -- "$venv/setup.log" | show
    log "setting up failed: see '$venv/setup.log', mend it and try again"
    return 1
  fi
  # The tools of the checks come on top of what the program itself needs.
  [[ $stamp == */sm-setup ]] || cp -p -- "$begun" "$venv/sm-setup"
  mv -- "$begun" "$stamp"
}

_install() {
  [[ -x $1/bin/python ]] || "$(_best_python)" -Im venv "$1" || return
  PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$1/bin/python" -Im pip install \
    --config-settings editable_mode=compat -e "$sm_root${2:+[$2]}"
}

_stamp_text() {
  printf '%s\n' "$sm_root" "$(<"$sm_root/setup.cfg")" "$(<"$sm_root/pyproject.toml")"
}

# A checkout gives files a new date without a change in them. That is no reason to install again.
_restamp() {
  [[ -e $1 && -x $sm_root/.venv/bin/python && $(<"$1") == "$(_stamp_text)" ]] && touch -- "$1"
}

# Prints the first interpreter that will do: the real one, not a shim that looks for it each time.
_best_python() {
  local name check='import ensurepip, sys, venv; sys.version_info >= (3, 11) or sys.exit(1)'
  for name in python3 python3.13 python3.12 python3.11; do
    "$name" -Ic "$check; print(sys.executable)" 2>/dev/null && return
  done
  return 1
}

_missing_packages() {
  local packages=()
  type tmux &>/dev/null || packages+=(tmux)
  type git &>/dev/null || packages+=(git)
  _best_python >/dev/null || packages+=(python3 python3-venv)
  printf '%s' "${packages[*]}"
}

# Installs what is missing if that is allowed; otherwise names it.
_require_programs() {
  local missing output=
  missing=$(_missing_packages)
  if [[ -n $missing ]] && ((EUID == 0)) && type apt-get &>/dev/null; then
    log "installing $missing"
    # shellcheck disable=SC2086  # several packages
    output=$(apt-get update 2>&1 && DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends $missing 2>&1)
    missing=$(_missing_packages)
  fi
  [[ -n $missing ]] || return 0
  [[ -z $output ]] || tail -n 5 <<<"$output" | show
  log "missing: $missing; run apt-get install $missing (Python has to be 3.11 or newer)"
  return 1
}
