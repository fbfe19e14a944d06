"""The scripts that the document on context-aware handoffs prints, as people have them installed.

They are no code of ours: what they ask of `sm serve` is a promise, so they run as they are. Only
the port is another one, and they wait as long as a test does.
"""

# ruff: noqa: E501 - the document's own lines

STATUS_LINE = """\
#!/bin/bash
# Status line script — receives context JSON from Claude Code via stdin
INPUT=$(cat)

# Extract context data
SESSION_ID=$(echo "$INPUT" | jq -r '.session_id // empty')
USED_PCT=$(echo "$INPUT" | jq -r '.context_window.used_percentage // 0')
TOTAL_INPUT=$(echo "$INPUT" | jq -r '.context_window.total_input_tokens // 0')
TOTAL_OUTPUT=$(echo "$INPUT" | jq -r '.context_window.total_output_tokens // 0')
CONTEXT_SIZE=$(echo "$INPUT" | jq -r '.context_window.context_window_size // 200000')

# Map Claude session_id to sm session_id via env var
SM_SESSION_ID="${CLAUDE_SESSION_MANAGER_ID}"

if [ -n "$SM_SESSION_ID" ] && [ "$USED_PCT" != "null" ] && [ "$USED_PCT" != "0" ]; then
  # Post to sm server (non-blocking, short timeout)
  # sm server only listens on 127.0.0.1 — this call is localhost-only (trusted)
  curl -s --max-time 0.5 -X POST http://localhost:8420/hooks/context-usage \\
    -H "Content-Type: application/json" \\
    -d "$(jq -n \\
          --arg sid "$SM_SESSION_ID" \\
          --argjson pct "$USED_PCT" \\
          --argjson tin "$TOTAL_INPUT" \\
          --argjson tout "$TOTAL_OUTPUT" \\
          --argjson csz "$CONTEXT_SIZE" \\
          '{session_id: $sid, used_percentage: $pct, total_input_tokens: $tin, total_output_tokens: $tout, context_window_size: $csz}')" \\
    >/dev/null 2>&1 &
fi

# Output status line text (displayed in Claude Code TUI)
echo "${USED_PCT}% ctx"
"""
PRE_COMPACT = """\
#!/bin/bash
INPUT=$(cat)
SM_SESSION_ID="${CLAUDE_SESSION_MANAGER_ID}"
TRIGGER=$(echo "$INPUT" | jq -r '.trigger // "unknown"')

if [ -n "$SM_SESSION_ID" ]; then
  # sm server only listens on 127.0.0.1 — localhost-only trusted call
  curl -s --max-time 0.5 -X POST http://localhost:8420/hooks/context-usage \\
    -H "Content-Type: application/json" \\
    -d "$(jq -n --arg sid "$SM_SESSION_ID" --arg trig "$TRIGGER" \\
          '{session_id: $sid, event: "compaction", trigger: $trig}')" \\
    >/dev/null 2>&1
fi
exit 0
"""
RECOVERY = """\
#!/bin/bash
INPUT=$(cat)
SM_SESSION_ID="${CLAUDE_SESSION_MANAGER_ID}"

if [ -z "$SM_SESSION_ID" ]; then
  exit 0
fi

# Query sm server for the last handoff path (set by sm#196 _execute_handoff)
# sm server only listens on 127.0.0.1 — localhost-only trusted call
HANDOFF_PATH=$(curl -s --max-time 2 http://localhost:8420/sessions/"$SM_SESSION_ID" \\
  | jq -r '.last_handoff_path // empty')

# If a handoff doc was previously executed for this session, inject it as additional context
if [ -n "$HANDOFF_PATH" ] && [ -f "$HANDOFF_PATH" ]; then
  jq -n --rawfile ctx "$HANDOFF_PATH" '{
    hookSpecificOutput: {
      hookEventName: "SessionStart",
      additionalContext: $ctx
    }
  }'
fi
"""
