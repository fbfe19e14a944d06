# shellcheck shell=bash
# Refuses a turn that begins by itself. user-prompt-submit sources it in a session that is paused or
# may spend nothing.
#
# Claude Code submits what its timers (CronCreate) and background tasks say as if a person had typed
# it, and the payloads do not tell them apart; it drops what is refused (measured with 2.1.332). So
# that is kept in `held-back`, a line of JSON each, and becomes a message, which waits like others.
# shellcheck disable=SC2154 # dir and payload are common.sh's

# A person who types has been active in the terminal so many seconds ago.
ACTIVE=60
# Bytes that are kept.
KEPT=65536

# begins_by_itself: neither a person nor sm has typed it. Where that cannot be told, a person has. What
# sm has typed may be submitted late, but lies in `queue/cur` until then. An event over HTTP cannot be
# refused. What Codex does with a refusal, and whether it begins turns by itself, was not measured.
begins_by_itself() {
  local clients at handed=("$dir"/queue/cur/*)
  [[ ${SM_HOOKS:-} != http && ${SM_CLIENT:-} != codex ]] || return 1
  [[ ! -s $dir/expect && ! -e ${handed[0]} && $payload != *'[sm] Task '* ]] || return 1
  clients=$(tmux list-clients -t "${TMUX_PANE:-none}" -F '#{client_activity}') || return 1
  while read -r at; do
    [[ -z $at ]] || ((EPOCHSECONDS - at > ACTIVE)) || return 1
  done <<<"$clients"
}

# hold_back: keeps it, unless the same waits already, and refuses it.
hold_back() {
  local kept='' said
  [[ ${payload:0:KEPT} =~ \"prompt\":\"([^\"\\]|\\.)*\" ]] && said="{${BASH_REMATCH[0]}}" || said=
  if [[ -n $said ]] && ours "$dir/held-back"; then
    [[ ! -s $dir/held-back ]] || IFS= read -r -N "$KEPT" kept <"$dir/held-back"
    [[ $kept == *"$said"* ]] || ((${#kept} + ${#said} > KEPT)) || printf '%s\n' "$said" >>"$dir/held-back"
  fi
  printf '{"decision":"block","reason":"%s"}\n' \
    'sm: the session rests, so nothing begins by itself; the agent gets this when it goes on.'
  poke
}
