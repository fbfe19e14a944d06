"""Text that `?` shows."""

HELP = """\
Keys

  j k, arrows       select another session        Enter  open it: story, messages, terminal
  PgUp PgDn, g G    a page, the first, the last   Esc    back
  !                 only what needs you, or all   /      select what has these words; n, N
  o                 arrange the list anew         q      quit

  Space  peek at the last words, and answer right there
  r      reply to a question: the agent gets it as a message, the issue as a comment
  s      send a message: the agent gets it at the end of its turn
  a      attach: enter the terminal; the tmux prefix and d come back
  p      pause a session, or let it go on
  A C    approve a pull request that waits for a review, or request changes:
         what it changes is shown first, PgUp and PgDn turn its pages
  M      merge one that waits for a person
  B      raise the limit that keeps a session or a project

Nothing moves by itself: what is new comes to the end of the list, what is over stays where it
was. o puts first again what needs you.

Columns

  !      a person is needed; the sentence and the command stand in its line
  Way    work, CI, review, merge: done, at it, turned back, not there yet
  For    since when it is in this state
  Tries  f: fixes after a CI failure, r: review rounds, x: restarts
  Ctx    how full its context is

docs/TOP.md tells more."""
