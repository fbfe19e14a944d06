"""What `bin/test` runs beside the tests of decisions: each shows that a room works, for real.

A room has one or two here, or a module whose tests take next to no time. What else may go wrong is
for `bin/test --all`. An entry is a test, with one of its parameters or with all, or a module. Each
folder with tests that start a terminal, an agent or a server has one: a test sees to it.
"""

from __future__ import annotations

CHOSEN = {
    # The tools
    "tests/adapters/test_tmux.py": "sessions of tmux begin, are looked at, and end",
    "tests/adapters/test_composer.py::test_a_text_arrives_as_one_message_byte_for_byte": (
        "a text is typed into a terminal"
    ),
    "tests/adapters/agent/test_screen.py::test_a_real_terminal_is_read": "what it shows is read",
    "tests/adapters/test_viewers.py": "a person at it is seen",
    # Sessions, messages and contexts
    "tests/sessions/test_agent.py": "an agent is started, found again and stopped",
    "tests/sessions/test_attach.py::test_a_person_sees_the_session_and_no_other": (
        "a person enters its terminal"
    ),
    "tests/messages/test_delivery.py": "a message is delivered, waits or is refused",
    "tests/messages/test_interrupt.py": "an urgent one interrupts",
    "tests/messages/test_follow_up.py::test_sessions_talk_and_answer_by_name": (
        "agents talk to each other"
    ),
    "tests/messages/test_send.py::test_waiting_ends_when_the_turn_is_over_or_time_is_up": (
        "a person sends and waits for the turn's end"
    ),
    "tests/personal/test_reactor.py::test_a_parent_hears_that_its_child_has_died": (
        "a session without an issue is looked after"
    ),
    "tests/context/test_clear.py": "a context is cleared",
    "tests/context/test_cycle.py::test_a_cycle_that_is_waited_for_tells_each_step": (
        "a context is replaced, on command"
    ),
    "tests/context/test_verb_context.py::test_an_agents_context_is_seen_and_it_is_warned_once": (
        "an agent hears that it fills up"
    ),
    "tests/e2e/test_pausing.py::test_messages_wait_and_say_how_they_go_on": (
        "a session rests, and goes on"
    ),
    # Issues
    "tests/issues/look/test_observe.py": "the phase of a running agent is observed",
    "tests/issues/act/test_hands.py": "nothing ends a session under a person's hands",
    "tests/issues/test_start.py": "an issue is taken up",
    "tests/issues/test_attempts.py::test_an_overtaken_agent_ends_and_its_successor_goes_on": (
        "work elsewhere is fenced in"
    ),
    "tests/e2e/test_journeys.py::test_issue_becomes_a_merged_branch": "the whole way",
    "tests/e2e/test_journeys.py::test_failing_ci_is_handed_to_the_agent_with_its_log": "CI",
    "tests/e2e/test_journeys.py::test_requested_changes_reach_the_agent_with_file_and_line": (
        "reviews"
    ),
    "tests/e2e/test_journeys.py::test_killed_agent_is_recovered_with_what_git_knows": "a crash",
    "tests/e2e/test_journeys.py::test_question_of_the_agent_is_answered_from_the_command_line": (
        "a question to a person"
    ),
    "tests/e2e/test_journeys.py::test_issue_closed_by_a_person_ends_the_session_and_keeps_unpushed_work": (  # noqa: E501
        "a person settles it"
    ),
    "tests/e2e/test_faults.py::test_killed_monitor_is_restarted_by_the_next_tick": (
        "any process of ours may die"
    ),
    "tests/e2e/test_any_forge.py::test_the_five_journeys_end_merged_on_any_forge[github]": (
        "the same journeys on a forge elsewhere"
    ),
    "tests/e2e/test_agents_verbs.py::test_an_agent_without_a_token_reads_comments_and_merges[local]": (  # noqa: E501
        "agents' own verbs"
    ),
    "tests/e2e/test_notifying.py::test_a_question_its_reminder_and_its_end_are_told": (
        "a channel to a person"
    ),
    "tests/e2e/test_rotation.py::test_an_agent_goes_on_in_a_new_context_and_is_the_same_session": (
        "an agent hands off to itself"
    ),
    "tests/e2e/test_slots.py::test_a_night_goes_on_although_nobody_reviews": (
        "waiting costs no slot"
    ),
    "tests/e2e/test_pausing.py::test_one_issue_rests_and_another_goes_on": "sm pause and resume",
    "tests/issues/supervise/test_act.py::test_claim_of_a_closed_issue_is_given_up_by_the_doctor": (
        "what is left over"
    ),
    # Beside the core
    "tests/cli/test_hostile_output.py::test_no_command_passes_on_what_a_terminal_would_act_upon": (
        "no command harms a terminal"
    ),
    "tests/passes/test_server.py::test_a_pass_that_is_killed_ends_alone": "the server of passes",
    "tests/lib/test_shell_phase.py": "the loop for scripts of one's own",
    "tests/lib/test_hooks.py": "hooks and monitor meet",
    "tests/faces/test_faces.py": "all that a person reads agrees, and with what is so",
    "tests/setup/test_uninstall.py::test_while_a_loop_a_server_or_a_watch_runs_nothing_is_done": (
        "what runs is named before sm is removed"
    ),
    "tests/views/test_session.py::test_watch_goes_on_until_ctrl_c_and_leaves_the_terminal_as_it_was": (  # noqa: E501
        "a table that is watched"
    ),
    "tests/plugins/chat/threads/test_document.py::test_the_calls_have_the_results_that_are_shown": (
        "the bridge as documented"
    ),
    "tests/plugins/chat/mcp/test_tools.py::test_a_whole_thread_goes_back_and_forth": (
        "sm mcp over both transports"
    ),
    "tests/e2e/test_bridge.py::test_what_the_chat_says_reaches_the_agent_once_in_order": (
        "a chat reaches an agent"
    ),
    "tests/plugins/cost/ledger/test_entries.py::test_two_readers_of_which_some_are_killed": (
        "a ledger that several processes write"
    ),
    "tests/plugins/cost/ledger/test_scopes.py::test_kills_between_an_entry_and_its_sum": (
        "budgets that count each request"
    ),
    "tests/plugins/doctor/test_verb.py::test_a_sound_installation_is_all_ok": "sm doctor",
    "tests/plugins/doctor/test_probe.py::test_nothing_of_a_probe_is_left": "sm doctor --probe",
    "tests/plugins/forges/rest/test_woodpecker.py": "CI of Woodpecker",
    "tests/plugins/hosts/dispatch/test_tick.py::test_a_ready_issue_is_claimed_and_placed_once": (
        "dev-poll gives an issue to a host"
    ),
    "tests/plugins/hosts/node/test_serve.py::test_a_command_reads_what_came_with_it_and_runs_in_the_clone": (  # noqa: E501
        "a node carries out a command"
    ),
    "tests/plugins/hosts/ssh/test_twins.py": "one machine under two names",
    "tests/plugins/hosts/test_journey.py::test_an_issue_becomes_a_merge_on_a_node": (
        "an issue is worked on by another machine, over ssh"
    ),
    "tests/plugins/http/test_serve.py::test_input_reaches_the_agent": "sm serve",
    "tests/web/test_guard.py::test_other_machines_need_a_token": "who may ask a server",
    "tests/slurm/test_jobs.py::test_an_issue_becomes_a_merge_in_a_job": "sessions run in jobs",
    "tests/plugins/page/test_stream.py::test_each_listener_hears_of_each_change": (
        "the stream that keeps the page fresh"
    ),
    "tests/plugins/page/terminal/test_node.py": "a node shows a session's terminal",
    "tests/plugins/page/browser/test_terminal.py::test_it_shows_what_tmux_shows_and_leaves_the_window_as_it_is": (  # noqa: E501
        "a session's terminal, live in a browser"
    ),
    "tests/plugins/page/browser/test_journeys.py::test_a_question_is_answered_in_two_clicks": (
        "the page, in a browser"
    ),
    "tests/plugins/http/test_webhooks.py::test_what_matters_is_accepted_and_noted": "webhooks",
    "tests/plugins/notify/test_delivery.py::test_a_word_is_told_once_by_json_and_by_ntfy": (
        "a service tells people"
    ),
    "tests/plugins/notify/test_notifier.py::test_a_slow_service_and_a_dead_one_delay_no_other": (
        "the process that sends"
    ),
    "tests/plugins/test_distribution.py::test_a_project_on_its_forge_is_polled": (
        "a plugin of somebody else"
    ),
    "tests/golden/test_golden.py": "what each face says of made states, byte for byte",
    "tests/project/test_packaging.py::test_every_module_is_in_the_wheel": "what is installed",
    # The real clients: once through
    "tests/real/test_delivery.py::test_an_idle_agent_accepts_a_plain_message_as_it_is": (
        "a message to Claude Code"
    ),
    "tests/real/test_rotation.py::test_an_agent_that_hands_off_goes_on_in_a_new_context": (
        "its context"
    ),
    "tests/real/test_newcomer.py": "an issue that it merges, as in the README",
    "tests/real/test_codex_delivery.py::test_a_text_that_is_too_long_for_a_hook_arrives_whole": (
        "a message to Codex"
    ),
    "tests/real/test_github_emulator.py::test_an_issue_is_taken_talked_about_merged_and_closed": (
        "a GitHub that others have written"
    ),
}
"""The tests, each with what it shows."""


def is_chosen(nodeid: str) -> bool:
    """Whether a test is one of them."""
    module, _, _ = nodeid.partition("::")
    name, _, _ = nodeid.partition("[")
    return not CHOSEN.keys().isdisjoint((module, name, nodeid))
