"""What happens in one trial of `bin/soak people`: drawn from its seed, and nothing else. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What a person does, or what comes for the agent."""

    ATTACH = "attaches"
    DETACH = "detaches"
    RESIZE = "makes the terminal another size"
    TYPE = "types half a line"
    SUBMIT = "sends the line off"
    COPY = "looks through the history"
    LEAVE = "leaves it"
    MENU = "opens a menu of the client"
    CLOSE = "closes it"
    TRANSCRIPT = "opens and closes the client's transcript"
    INTERRUPT = "interrupts the turn"
    SPLIT = "splits the window"
    TUNE = "sets an option of tmux"
    SETTINGS = "changes a setting of the client"
    PAUSE = "pauses"
    WORK = "(a message that takes time)"
    TOOL = "(a message whose answer uses a tool)"
    MESSAGE = "(a message)"
    RESULT = "(a result of CI)"
    REMINDER = "(a reminder)"
    URGENT = "(an urgent message)"
    ROTATE = "(a rotation)"
    LOAD = "(others use the processor)"


PEOPLE = (
    *[Step.TYPE] * 5,
    *[Step.SUBMIT] * 3,
    *[Step.RESIZE] * 3,
    *(Step.COPY, Step.LEAVE, Step.MENU, Step.CLOSE, Step.TRANSCRIPT, Step.INTERRUPT),
    *(Step.SPLIT, Step.TUNE, Step.TUNE, Step.SETTINGS, Step.DETACH, Step.PAUSE, Step.PAUSE),
)
ARRIVALS = (
    *[Step.MESSAGE] * 4,
    *(Step.WORK, Step.WORK, Step.TOOL, Step.RESULT, Step.RESULT, Step.REMINDER, Step.REMINDER),
    *(Step.URGENT, Step.LOAD),
)
ROTATIONS = 0.08
"""The part of the trials with a rotation among what comes."""
SIZES = ((30, 6), (20, 4), (40, 8), (80, 24), (60, 15), (120, 40), (200, 50), (250, 70))
OPTIONS = (
    *("status off", "status-position top", "mouse on", "mode-keys vi", "detach-on-destroy off"),
    *("-w window-size smallest", "-w window-size largest", "-w aggressive-resize on"),
    *("-w pane-border-status top", "-w synchronize-panes on", "-w monitor-activity on"),
)
LETTERS = "abcdefg hijk lmno pqrs tuvw xyz .,;:-_()"


@dataclass(frozen=True)
class Moment:
    """A step; `dice` decides on its details, `pause_s` comes before it."""

    step: Step
    pause_s: float
    dice: int


def draw(seed: int) -> tuple[Moment, ...]:
    """The moments of a trial, in order. A person is there from the beginning, mostly."""
    chance = random.Random(seed)
    steps = [chance.choice(PEOPLE) for _ in range(chance.randint(2, 8))]
    arrivals = [chance.choice(ARRIVALS) for _ in range(chance.randint(1, 4))]
    if chance.random() < ROTATIONS:
        arrivals.append(Step.ROTATE)
    for arrival in arrivals:
        steps.insert(chance.randint(0, len(steps)), arrival)
    if chance.random() < 0.9:
        steps.insert(0, Step.ATTACH)
    return tuple(
        Moment(step, chance.choice((0.0, 0.0, 0.02, 0.1, 0.3)), chance.randrange(1 << 30))
        for step in steps
    )
