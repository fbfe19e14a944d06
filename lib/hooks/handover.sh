# shellcheck shell=bash
# Handing messages to the agent, and keeping account of it: read only when there is something.
# Sourced by common.sh's handover. A message is a file of the queue, NANOSECONDS-ID.MODE; its first line
# is its text as one JSON string, which is passed on without being understood.
# shellcheck disable=SC2154 # dir, head, session are common.sh's

MESSAGE='+([0-9])-+([a-z0-9]).@(sequential|important|steer|urgent)'
# What the client shows the model whole, in UTF-16 units; more it would put into a file.
LIMIT=9000
# Codex counts 10,000 bytes, of which a character may have three.
[[ ${SM_CLIENT:-} != codex ]] || LIMIT=3000
# Characters of a file that holds no more than that: six for each unit, and the envelope.
READ=58000
# The client ends the turn itself when hooks carry it on too often.
BLOCKS=7

# hand_over: at a turn's end, goes on with the messages that are waiting; returns 1 for none.
hand_over() {
  local blocks=0 names=()
  [[ ! -s $dir/blocks ]] || ! ours "$dir/blocks" || read -r blocks <"$dir/blocks"
  [[ $blocks == [0-9] ]] || blocks=0
  ((blocks < BLOCKS)) && ! is_in_doubt && may_deliver || return 1
  choose urgent
  choose important
  choose sequential steer
  collect && keep blocks "$((blocks + 1))"$'\n' && take || return 1
  set_state busy
  answer Stop
}

# steer: within a turn, what is meant for it. The mark goes before the look into the queue:
# what arrives in between has set it again.
steer() {
  local names=()
  ours "$dir/steer" && may_deliver || return 0
  keep steer ''
  choose steer
  collect && take || return 0
  [[ -z $left ]] || keep steer $'more\n'
  answer PostToolUse
}

answer() {
  printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"%s"}}\n' "$1" "$text"
}

# may_deliver: no replacement of the context is under way, and nobody else is delivering. The lock
# is held until the hook ends.
may_deliver() {
  [[ ! -e $dir/hold && -d $dir/queue/new && -d $dir/queue/cur ]] && ours "$dir/delivery.lock" || return 1
  exec 9>>"$dir/delivery.lock" && flock -w 1 9 && [[ ! -e $dir/hold ]]
}

# choose MODE…: adds the waiting messages of these modes to $names, the oldest first.
choose() {
  local path mode
  for path in "$dir"/queue/new/[0-9]*; do
    mode=${path##*.}
    # shellcheck disable=SC2053 # a pattern
    [[ " $* " == *" $mode "* && ${path##*/} == $MESSAGE ]] && ours "$path" && names+=("${path##*/}")
  done
}

# collect: fills $texts and $files with the messages of $names, until one does not fit any more.
# `left` says that the next hook can go on; what is too long in itself is left to the monitor.
collect() {
  local name line size total=0
  texts=() files=() left=''
  for name in "${names[@]}"; do
    read_message "$name" || break
    if ((total + size > LIMIT)); then
      left=yes
      break
    fi
    texts+=("$line") files+=("$name") total=$((total + size + 2))
  done
  ((${#files[@]}))
}

# read_message NAME: sets `line`, its text as JSON without the quotes, and `size`; returns 1 where
# it is too long or damaged.
read_message() {
  local text='' envelope
  IFS= read -r -N "$READ" text <"$dir/queue/new/$1" || :
  line=${text%%$'\n'*}
  ((${#line} < ${#text})) || return 1
  envelope=${text:${#line}+1}
  [[ $line == '"'*'"' && $line != *[!\ -~]* ]] || return 1
  line=${line:1:-1} size=${#line}
  if [[ $envelope == *'"size":'* ]]; then
    size=${envelope##*'"size":'} size=${size# } size=${size%%[!0-9]*}
  fi
  [[ $size == +([0-9]) && ${#size} -le 6 ]] && size=$((10#$size)) && ((size <= LIMIT))
}

# take: claims $files by moving them, notes that they were handed out, and joins their texts to
# $text with blank lines. What cannot be noted is put back.
take() {
  local index name taken=() notes=''
  text=
  mv -f -- "${files[@]/#/"$dir/queue/new/"}" "$dir/queue/cur/"
  for index in "${!files[@]}"; do
    name=${files[index]}
    [[ -e $dir/queue/cur/$name && ! -e $dir/queue/new/$name ]] || continue
    taken+=("$dir/queue/cur/$name")
    notes+="$name $session ${turn:--}"$'\n'
    text+="${text:+\\n\\n}${texts[index]}"
  done
  ((${#taken[@]})) || return 1
  if ! { ours "$dir/offered" && printf '%s' "$notes" >>"$dir/offered"; }; then
    mv -f -- "${taken[@]}" "$dir/queue/new/"
    return 1
  fi
}

# mark_compacted: a compaction has come between what was handed out and its proof, at this time.
mark_compacted() {
  local name of_context of_prompt lines=''
  ours "$dir/offered" || return 0
  while read -r name of_context of_prompt; do
    [[ $of_context != "$session" ]] || of_prompt=compacted:$EPOCHREALTIME
    lines+="$name $of_context $of_prompt"$'\n'
  done <"$dir/offered"
  keep offered "$lines"
}

# is_in_doubt: a compaction may have swallowed what was handed out before, which then goes first.
is_in_doubt() {
  local lines=''
  [[ ! -s $dir/offered ]] || ! ours "$dir/offered" || IFS= read -r -N 9000 lines <"$dir/offered"
  [[ $lines == *' compacted:'* ]]
}

# prove: what was handed out in this turn is accepted; what belongs to another turn stays,
# for sm to decide. A turn that a Stop hook has carried on is the same one.
prove() {
  local name of_context of_prompt rest='' accepted=''
  ours "$dir/offered" || return 0
  while read -r name of_context of_prompt; do
    if [[ $of_context == "$session" ]] && same_turn "$of_prompt" && accept_file "$name"; then
      accepted=yes
    else
      rest+="$name $of_context $of_prompt"$'\n'
    fi
  done <"$dir/offered"
  [[ -n $accepted ]] || return 0
  keep offered "$rest"
  poke
}

same_turn() {
  [[ $1 != compacted:* && ($1 == "${turn:--}" || $head == *'"stop_hook_active":'?( )true*) ]]
}

accept_file() {
  # shellcheck disable=SC2053 # a pattern
  [[ $1 == $MESSAGE ]] || return 0
  local id=${1#*-}
  accept "${id%.*}"
}

# accept ID: the agent provably has this message.
accept() {
  [[ $1 == +([a-z0-9]) && ${#1} -le 64 ]] || return 0
  [[ -d $dir/accepted ]] || mkdir -m 700 -- "$dir/accepted"
  ours "$dir/accepted/$1" && : >"$dir/accepted/$1"
}

# confirm: the prompt is the one that is expected, perhaps; then it is accepted. The answer goes
# first: a hook that dies in between has confirmed nothing.
confirm() {
  local id way expected answer
  ours "$dir/expect" || return 0
  {
    read -r id way
    IFS= read -r expected
    IFS= read -r answer
  } <"$dir/expect"
  has_prompt "$way" "$expected" || return 0
  [[ -z $answer ]] || printf '%s\n' "$answer"
  accept "$id"
  keep expect ''
  poke
}

# has_prompt WAY TEXT: TEXT is JSON without its quotes, so no quote of it stands alone.
has_prompt() {
  if [[ $1 == exact ]]; then
    [[ $payload == *'"prompt":'?( )'"'"$2"'"'* ]]
  else
    [[ $1 == within && -n $2 && $payload == *'"prompt":'*"$2"* ]]
  fi
}
