"""Walks through a world step by step, and compares all faces with each other and with the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sm.base.clock import wait_until
from tests.faces.faces import Faces, compare
from tests.faces.truth import judge
from tests.faces.world import World

AGAIN_S = 25.0
"""Faces may differ for so long: rows that nothing but the time changes are made anew within it."""
PAUSE_S = 0.5


class DifferentError(AssertionError):
    """Faces that say different things, or what is not so."""


def walk(
    world: World,
    steps: int,
    goes_on: Callable[[], bool] = lambda: True,
    course: Sequence[str] = (),
) -> int:
    """Make so many steps, as long as it goes on; return how many were made.

    They are random ones behind those of the `course`.

    Raises:
        DifferentError: with the seed, the number of the step, and all that has happened.

    """
    faces = Faces(world)
    for number in range(1, steps + 1):
        if not goes_on():
            return number - 1
        world.step(course[number - 1] if number <= len(course) else "")
        told = look(world, faces, wholly=bool(course) or world.is_config_broken)
        if told:
            told = settle(world, faces)
        if told:
            raise DifferentError(
                "\n".join(
                    (
                        f"seed {world.seed}, step {number}:",
                        *(f"  {one}" for one in told),
                        "all that has happened:",
                        *(f"  {at}. {words}" for at, words in enumerate(world.story, 1)),
                    )
                )
            )
    return steps


def settle(world: World, faces: Faces) -> list[str]:
    """Say what is still wrong once all that only time changes has been made anew."""
    told: list[str] = []

    def agree() -> bool:
        told[:] = look(world, faces, wholly=True)
        return not told

    wait_until(agree, AGAIN_S, PAUSE_S)
    return told


def look(world: World, faces: Faces, *, wholly: bool) -> list[str]:
    """Say what is wrong at this moment, by all faces or by some of them."""
    read = faces.read(wholly=wholly)
    told = compare(read, is_config_broken=world.is_config_broken, there=world.there)
    rows = next((face.rows for face in read if face.rows is not None), {})
    return told + list(judge(world, faces.known, rows))
