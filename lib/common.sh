# shellcheck shell=bash
# What every program in bin/ needs: where it is, how it speaks, which Python runs the core.
# Sourced, never run; builtins only, unless the clone still has to be set up.

unset CDPATH

# sm_root: the folder that holds bin/ and lib/, absolute.
sm_root=${BASH_SOURCE[0]%/lib/common.sh}
[[ $sm_root == /* ]] || sm_root=$PWD/$sm_root
sm_root=${sm_root%/bin/..}
if [[ $sm_root == */.. || ! $sm_root/lib/common.sh -ef ${BASH_SOURCE[0]} ]]; then
  sm_root=$(cd -P -- "${BASH_SOURCE[0]%/*}/.." && pwd -P)
fi

# log MESSAGE: one line for a person, on stderr.
log() {
  local REPLY
  printable "$1"
  printf '%s: %s\n' "${0##*/}" "$REPLY" >&2
}

# show: prints its input for a person, line by line, on stderr.
show() {
  local line REPLY
  while IFS= read -r line || [[ -n $line ]]; do
    printable "$line"
    printf '%s\n' "$REPLY" >&2
  done
}

# printable TEXT: sets REPLY to TEXT without the characters that control a terminal or stay hidden:
# control characters of both sets, bidirectional and invisible ones. At most 4000 bytes. It is what
# sm/base/output.py does, as far as patterns of bytes can do it.
printable() {
  local LC_ALL=C
  REPLY=${1:0:4000}
  REPLY=${REPLY//$'\xc2'[$'\x80'-$'\x9f\xad']/}
  REPLY=${REPLY//$'\xe2\x80'[$'\x8b'-$'\x8f\xa8'-$'\xae']/}
  REPLY=${REPLY//$'\xe2\x81'[$'\xa0'-$'\xaf']/}
  REPLY=${REPLY//$'\xef\xbb\xbf'/}
  REPLY=${REPLY//[$'\x01'-$'\x08\n'-$'\x1f\x7f']/ }
}

# die MESSAGE [STATUS]: log and end the program, with 1 unless told otherwise.
die() {
  log "$1"
  exit "${2:-1}"
}

# print_help FILE: the comment at the head of a program is its help.
print_help() {
  local line help=
  while IFS= read -r line; do
    [[ $line != '#!'* ]] || continue
    [[ $line == '#'* ]] || break
    line=${line#\#}
    help+=${line# }$'\n'
  done <"$1"
  printf '%s' "$help"
}

# sm_is_current STAMP: whether .venv matches setup.cfg and pyproject.toml, by the stamp that sm_setup
# left. The stamp's first line is the clone's root: a moved clone is set up again.
sm_is_current() {
  local stamp=$sm_root/.venv/$1 made_for
  [[ -e $stamp && -x $sm_root/.venv/bin/python ]] || return 1
  [[ ! $sm_root/setup.cfg -nt $stamp && ! $sm_root/pyproject.toml -nt $stamp ]] || return 1
  IFS= read -r made_for <"$stamp" && [[ $made_for -ef $sm_root ]]
}

# sm_find_python [test]: sets SM_PYTHON to the interpreter that has the core (and, with `test`,
# the tools of the checks). It sets the clone up if that was not done yet. An existing SM_PYTHON
# stays: the commands of an installed wheel pass their own.
sm_find_python() {
  if [[ -z ${SM_PYTHON:-} ]]; then
    if ! sm_is_current "sm-setup${1:+-$1}"; then
      # shellcheck source=lib/setup.sh
      source "$sm_root/lib/setup.sh"
      sm_setup "$@" || exit
    fi
    SM_PYTHON=$sm_root/.venv/bin/python
  fi
  [[ -x $SM_PYTHON ]] || die "cannot run '$SM_PYTHON': set SM_PYTHON to the Python that has sm"
}
