from __future__ import annotations

import pytest

from sm.base.refusal import Refusal, find_refusal, tell_refusal

CODES = {
    "gone": "the agent does not run in its pane",
    "empty": "nothing is left of the text to send",
    "long": "the text is too long: put it into a file and send its path",
    "no-terminal": "its agent has no terminal to type into",
    "withdrawn": "it was taken back, or the session has ended",
    "hold": "its context is being replaced",
    "shell": "a shell runs in its pane, which would carry the text out",
    "mode": "a person looks through its history (copy mode), or its pane takes no input",
    "no-prompt": "it shows no input line",
    "dialog": "it asks a question, which Enter would answer",
    "starting": "it is starting, and begins with the task that it was given",
    "busy": "it is busy until its turn ends",
    "protected": "it is about to answer what would be lost with its turn",
    "compacting": "its context is being summed up",
    "blocked": "a hook of the person's own has refused the prompt (UserPromptSubmit in the "
    "settings): 'sm doctor' says where",
    "unsent": "its text stands in the input line, and the key that submits does not send it "
    "(keybindings.json): 'sm doctor' says what to set",
    "unsure": "the agent may have taken back what it was told before",
    "draft": "a person has half a line typed there",
    "typing": "a person has typed in it within ten minutes",
    "attached": "a person is attached to it",
    "changed": "a person typed at that moment",
    "no-tmux": "tmux does not answer",
    "paused": "it is paused: 'sm resume' lets it go on",
    "braked": "it may spend nothing now: 'sm status' says why, and until when",
    "behind": "other messages are before it",
    "handed": "it was given to the agent, which has not confirmed it yet",
}
"""What files hold, and the sentences that they held before there were codes: both stay readable."""


@pytest.mark.parametrize("code", CODES)
def test_a_file_names_a_refusal_by_its_code_or_by_the_sentence_of_an_older_version(
    code: str,
) -> None:
    [refusal] = [each for each in Refusal if each.value == code]
    assert find_refusal(code) is refusal
    assert find_refusal(CODES[code]) is refusal


def test_people_read_the_sentences_that_they_know() -> None:
    assert {each.value: each.sentence for each in Refusal} == CODES
    assert [tell_refusal(code) for code in CODES] == list(CODES.values())


@pytest.mark.parametrize("word", ["", "busy ", "is at work", "its context", "a dialog is open"])
def test_any_other_word_is_no_refusal_and_stands_for_itself(word: str) -> None:
    assert find_refusal(word) is None
    assert tell_refusal(word) == word
