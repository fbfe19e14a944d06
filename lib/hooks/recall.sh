# shellcheck shell=bash
# Tells an agent again after a compaction: its phase with the phase protocol, and the handoff
# document of its context. session-start sources it if there is one of them.
#
# It reads the files themselves, at that moment and by builtins. So sm need not run, and no prepared
# answer can be out of date. It takes some milliseconds, once in a compaction. People see what was
# told again, but not its text.
# shellcheck disable=SC2154 # dir and session are common.sh's

# Bytes. The client shows the model 10,000 characters, Codex as many bytes.
LIMIT=9000
FRAME=400

recall() {
  local text='' shown=''
  recall_phase
  recall_document
  [[ -n $text ]] || return 0
  text="[sm context] Your context was summed up.$text"
  shown="[sm context] After the compaction the agent is told again: $shown"
  to_json text
  to_json shown
  printf '{"systemMessage":"%s",' "$shown"
  printf '"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"%s"}}\n' "$text"
}

# recall_phase: adds the phase that an issue's agent has written last, if any, and the protocol.
recall_phase() {
  local file=${PHASE_FILE:-} phase='' protocol='' rest=''
  [[ $file == /* && -s $file ]] && ours "$file" || return 0
  IFS= read -r -n 400 phase <"$file"
  phase=${phase%%[$'\r\v\f\x1c'-$'\x1e']*}
  phase=${phase//[[:blank:]]/}
  case $phase in
  PHASE:awaiting_ci | PHASE:awaiting_review | PHASE:escalate | PHASE:done | PHASE:failed) ;;
  *) return 0 ;;
  esac
  if [[ -s $dir/system-prompt.md ]] && ours "$dir/system-prompt.md"; then
    {
      IFS= read -r -N 4000 protocol
      IFS= read -r -N 1 rest
    } <"$dir/system-prompt.md"
    [[ -z $rest ]] || cut_short protocol
  fi
  shown=$phase
  text+=$'\n\n'"The phase that you have written last: $phase${protocol:+$'\n\n'}${protocol%$'\n'}"
}

# recall_document: adds the handoff document with which this context began; of a long one only the
# beginning, and its path. After a person's own clear the task is another one.
recall_document() {
  local document='' path='' begun='' rest='' size
  # A document that was copied, but never handed on, has no path there.
  [[ -s $dir/handoff.md && -s $dir/last-handoff ]] || return 0
  ours "$dir/handoff.md" && ours "$dir/last-handoff" || return 0
  {
    IFS= read -r path
    IFS= read -r begun
  } <"$dir/last-handoff"
  [[ ${begun:--} == - || $begun == "$session" ]] || return 0
  size=$((LIMIT - ${#text} - ${#dir} - FRAME))
  path=${path:0:FRAME}
  # A name that could be read as words is in quotation marks that it cannot leave.
  if [[ $path == *[!A-Za-z0-9._/@+,=:~-]* ]]; then
    path=${path//\\/\\\\}
    path="\"${path//\"/\\\"}\""
  fi
  {
    IFS= read -r -N "$((size - ${#path}))" document
    IFS= read -r -N 1 rest
  } <"$dir/handoff.md"
  [[ -z $rest ]] || cut_short document
  keep recalled "$EPOCHREALTIME"$'\n'
  shown+="${shown:+, }the handoff document $path"
  text+=$'\n\n'"The handoff document that you went on from ($path); what your summary says is newer:"
  text+=$'\n\n'"${document%$'\n'}"
  [[ -z $rest ]] || text+=$'\n\n'"[That was its beginning. The whole of it is in $dir/handoff.md]"
}

# cut_short NAME: removes half a character from the end of that variable: its later bytes, then its
# first byte.
cut_short() {
  local -n whole=$1
  for _ in 1 2 3; do
    [[ $whole != *[$'\x80'-$'\xbf'] ]] || whole=${whole%?}
  done
  [[ $whole != *[$'\xc0'-$'\xff'] ]] || whole=${whole%?}
}

# to_json NAME: turns that variable into the inside of a JSON string.
to_json() {
  local -n raw=$1
  raw=${raw//\\/\\\\}
  raw=${raw//\"/\\\"}
  raw=${raw//$'\n'/\\n}
  raw=${raw//$'\t'/\\t}
  raw=${raw//[$'\x01'-$'\x1f\x7f']/}
}
