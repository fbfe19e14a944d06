# shellcheck shell=bash
# Hands messages to the agent, and keeps account of them. common.sh's handover sources it, only if
# there is something to hand over. A message is a file of the queue, NANOSECONDS-ID.MODE. Its first
# line is its text as one JSON string, which is passed on without being understood. So is the third
# line, if there is one: the text for a person.
# shellcheck disable=SC2154 # began, dir, head, session are common.sh's

MESSAGE='+([0-9])-+([a-z0-9]).@(sequential|important|steer|urgent)'
# UTF-16 units that the client shows the model; it would put a longer text into a file.
LIMIT=9000
# The limit of Codex is 10,000 bytes, and a character may have three.
[[ ${SM_CLIENT:-} != codex ]] || LIMIT=3000
# What Claude Code changes in a text that a hook adds, as it stands in JSON: `<` becomes `&lt;`. The
# monitor types such a text instead. The profile has the same pattern as `hook_escapes`.
BLANK='( |\\[nt]|\\u[0-9a-f]{4})*'
ESCAPES="<${BLANK}/?${BLANK}[Ss][Yy][Ss][Tt][Ee][Mm]-[Rr][Ee][Mm][Ii][Nn][Dd][Ee][Rr]"
[[ ${SM_CLIENT:-} != codex ]] || ESCAPES=
# Characters of a file that holds no more than that, and the 4,200 that are shown of it: six for each
# unit, and the envelope.
READ=84000
# The client ends the turn itself when hooks carry it on too often.
BLOCKS=7
# Characters of `offered` with more lines than one answer has messages.
OFFERS=4000000
locked=

# hand_over: at a turn's end, continues with the waiting messages; returns 1 for none.
hand_over() {
  local blocks=0 names=()
  [[ ! -s $dir/blocks ]] || ! ours "$dir/blocks" || read -r blocks <"$dir/blocks"
  [[ $blocks == [0-9] ]] || blocks=0
  ((blocks < BLOCKS)) && may_deliver && [[ -z $passing ]] && ! is_in_doubt || return 1
  choose urgent
  choose important
  choose sequential steer
  collect && keep blocks "$((blocks + 1))"$'\n' && take || return 1
  say Stop && set_state busy
}

# steer: within a turn, hands over the messages for it. The mark goes before the look into the queue,
# because a message in between sets it again. It stays as long as a message is held back.
steer() {
  local names=()
  ours "$dir/steer" && may_deliver || return 0
  [[ -n $passing ]] || keep steer ''
  choose steer
  collect && take || return 0
  say PostToolUse "$shown"
  [[ -z $left ]] || keep steer $'more\n'
}

# say EVENT [SHOWN]: answers with the taken messages, and the texts for people; at a turn's end the
# client shows the text itself. Returns 1 if the client does not listen. Then writes the time into the
# lines of `offered`. A hook killed before that leaves lines without a time, which no event proves.
say() {
  local at=$EPOCHREALTIME before name lines='' said='' more=''
  [[ -z ${2:-} ]] || more="\"systemMessage\":\"$2\","
  printf '{%s"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"%s"}}\n' \
    "$more" "$1" "$text" || return 1
  IFS= read -r -N "$OFFERS" lines <"$dir/offered" || :
  before=$((${#lines} - ${#notes}))
  ((before >= 0)) && [[ ${lines:before} == "$notes" ]] || return 0
  for name in "${taken[@]}"; do said+="$name $session ${turn:--} $at"$'\n'; done
  printf '%s' "${lines:0:before}$said" 1<>"$dir/offered" || :
}

# may_deliver: the session is not paused, it may spend something, and no other process is delivering. During a rotation,
# `passing` has blanks and the ids of the only messages that go through.
may_deliver() {
  [[ ! -e $dir/paused && ! -e $dir/braked && -d $dir/queue/new && -d $dir/queue/cur ]] && lock || return 1
  passing=
  [[ -e $dir/hold || -L $dir/hold ]] || return 0
  ours "$dir/hold" && IFS= read -r -N 4096 passing <"$dir/hold"
  passing=" ${passing%$'\n'} "
}

# may_pass NAME
may_pass() {
  local id=${1#*-}
  [[ -z $passing || $passing == *" ${id%.*} "* ]]
}

# lock: no other process hands over, or rewrites `offered`, until the hook ends. It may take a second,
# so it is tried once.
lock() {
  if [[ -z $locked ]]; then
    locked=no
    ours "$dir/delivery.lock" && exec 9>>"$dir/delivery.lock" && flock -w 1 9 && locked=yes
  fi
  [[ $locked == yes ]]
}

# choose MODE…: adds the waiting messages of these modes to $names, the oldest first.
choose() {
  local path mode
  for path in "$dir"/queue/new/[0-9]*; do
    mode=${path##*.}
    # shellcheck disable=SC2053 # a pattern
    [[ " $* " == *" $mode "* && ${path##*/} == $MESSAGE ]] && may_pass "${path##*/}" &&
      ours "$path" && names+=("${path##*/}")
  done
}

# collect: fills $texts, $views and $files with the messages of $names, until one does not fit.
# `left` says that the next hook can go on. The monitor types a message that is too long in itself.
collect() {
  local name line view size total=0
  texts=() views=() files=() left=''
  for name in "${names[@]}"; do
    read_message "$name" || break
    if ((total + size > LIMIT)); then
      left=yes
      break
    fi
    texts+=("$line") views+=("$view") files+=("$name") total=$((total + size + 2))
  done
  ((${#files[@]}))
}

# read_message NAME: sets `line`, its text as JSON without the quotes, `size`, and `view`, the text for
# people; returns 1 if it is too long or damaged, quotes others, or the client would change it.
read_message() {
  local text='' envelope
  IFS= read -r -N "$READ" text <"$dir/queue/new/$1" || :
  line=${text%%$'\n'*}
  ((${#line} < ${#text})) || return 1
  envelope=${text:${#line}+1}
  [[ $line == '"'*'"' && $line != *[!\ -~]* ]] || return 1
  [[ $envelope != *'"quotes":true'* ]] || return 1
  [[ -z $ESCAPES || $line != *'<'* || ! $line =~ $ESCAPES ]] || return 1
  line=${line:1:-1} size=${#line} view=${envelope#*$'\n'} envelope=${envelope%%$'\n'*}
  if [[ $view == '"'*'"'$'\n' && ${view%?} != *[!\ -~]* ]]; then view=${view:1:-2}; else view=; fi
  if [[ $envelope == *'"size":'* ]]; then
    size=${envelope##*'"size":'} size=${size# } size=${size%%[!0-9]*}
  fi
  [[ $size == +([0-9]) && ${#size} -le 6 ]] && size=$((10#$size)) && ((size <= LIMIT))
}

# take: claims $files by moving them: these are $taken. Notes in `offered` that they are handed out.
# Joins their texts to $text with blank lines, and the texts for people to $shown. A message that
# cannot be noted is put back.
take() {
  local index name
  taken=() text='' shown='' notes=''
  mv -f -- "${files[@]/#/"$dir/queue/new/"}" "$dir/queue/cur/"
  for index in "${!files[@]}"; do
    name=${files[index]}
    [[ -e $dir/queue/cur/$name && ! -e $dir/queue/new/$name ]] || continue
    taken+=("$name")
    notes+="$name $session ${turn:--}"$'\n'
    text+="${text:+\\n\\n}${texts[index]}"
    [[ -z ${views[index]} ]] || shown+="${shown:+\\n\\n}${views[index]}"
  done
  ((${#taken[@]})) || return 1
  if ! { ours "$dir/offered" && printf '%s' "$notes" >>"$dir/offered"; }; then
    mv -f -- "${taken[@]/#/"$dir/queue/cur/"}" "$dir/queue/new/"
    return 1
  fi
}

# mark_compacted: notes that a compaction came between the handing out and its proof, and when.
# Without the lock this is a new line, and holds for the lines before it.
mark_compacted() {
  local name of_context rest others='' marked=''
  ours "$dir/offered" || return 0
  lock
  while read -r name of_context rest; do
    if [[ $of_context == "$session" ]]; then
      marked+="$name $of_context compacted:$EPOCHREALTIME"$'\n'
    else
      others+="$name $of_context $rest"$'\n'
    fi
  done <"$dir/offered"
  if lock; then keep offered "$others$marked"; else printf '%s' "$marked" >>"$dir/offered"; fi
}

# is_in_doubt: a compaction may have lost what was handed out before, which then goes first.
is_in_doubt() {
  local lines=''
  [[ ! -s $dir/offered ]] || ! ours "$dir/offered" || IFS= read -r -N "$OFFERS" lines <"$dir/offered"
  [[ $lines == *' compacted:'* ]]
}

# prove: accepts what was said in this turn before this hook began. Messages of another turn stay, and
# sm decides about them. A turn that a Stop hook has continued keeps its id.
prove() {
  local name of_context of_prompt at names=() in_doubt='' settled=''
  ours "$dir/offered" || return 0
  while read -r name of_context of_prompt at; do
    if ! is_under_way "$name"; then
      settled=yes
    elif [[ $of_prompt == compacted:* ]]; then
      in_doubt+=" $name "
    elif [[ $of_context == "$session" && -n $at && $at < $began && $of_prompt == "${turn:--}" ]]; then
      names+=("$name")
    fi
  done <"$dir/offered"
  for name in "${names[@]}"; do
    [[ $in_doubt != *" $name "* ]] && accept_file "$name" && settled=new
  done
  [[ $settled != new ]] || poke
  [[ -z $settled ]] || forget_settled
}

# forget_settled: removes the lines of settled messages from `offered`. Without the lock they stay
# until the next event.
forget_settled() {
  local name rest lines=''
  lock || return 0
  while read -r name rest; do
    ! is_under_way "$name" || lines+="$name $rest"$'\n'
  done <"$dir/offered"
  keep offered "$lines"
}

# is_under_way NAME: the message is handed out and not accepted.
is_under_way() {
  # shellcheck disable=SC2053 # a pattern
  [[ $1 == $MESSAGE && -e $dir/queue/cur/$1 ]] || return 1
  local id=${1#*-}
  [[ ! -e $dir/accepted/${id%.*} ]]
}

accept_file() {
  local id=${1#*-}
  accept "${id%.*}"
}

# accept ID: the agent provably has this message.
accept() {
  [[ $1 == +([a-z0-9]) && ${#1} -le 64 ]] || return 0
  [[ -d $dir/accepted ]] || mkdir -m 700 -- "$dir/accepted"
  ours "$dir/accepted/$1" && : >"$dir/accepted/$1"
}

# confirm: accepts the expected prompt, if this is it. The answer goes first: a hook that dies in
# between has confirmed nothing. After `whole` the answer is only for a text that was damaged.
confirm() {
  local id way expected answer
  ours "$dir/expect" || return 0
  {
    read -r id way
    IFS= read -r expected
    IFS= read -r answer
  } <"$dir/expect"
  if has_prompt "$way" "$expected"; then
    [[ $way != whole ]] || answer=''
  else
    [[ $way == whole ]] && has_prompt within "message $id" || return 0
  fi
  [[ -z $answer ]] || printf '%s\n' "$answer"
  accept "$id"
  keep expect ''
  poke
}

# bring_task: if the prompt is the line that stands for the task, answers with the task. It does so
# each time, because a person may take the line back and send it again.
bring_task() {
  local id answer
  ours "$dir/opening" || return 0
  {
    read -r id
    IFS= read -r answer
  } <"$dir/opening"
  [[ -z $id || -z $answer || $payload != *"[sm] Task $id "* ]] || printf '%s\n' "$answer"
}

# has_prompt WAY TEXT: TEXT is JSON without its quotes, so no quote of it stands alone.
has_prompt() {
  if [[ $1 == exact ]]; then
    [[ $payload == *'"prompt":'?( )'"'"$2"'"'* ]]
  else
    [[ $1 == @(within|whole) && -n $2 && $payload == *'"prompt":'*"$2"* ]]
  fi
}
