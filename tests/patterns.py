"""Finds every regular expression of the code, makes hostile inputs for it, and times it on them."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import sm

PACKAGE = Path(sm.__file__).parent
PARSER: Any = importlib.import_module("re._parser")
"""What Python itself takes an expression apart with; no public module does."""

MAKERS = ("compile",)
METHODS: dict[str, Callable[[Any, Any], object]] = {
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "search": lambda pattern, text: pattern.search(text),
    "findall": lambda pattern, text: pattern.findall(text),
    "finditer": lambda pattern, text: pattern.findall(text),
    "split": lambda pattern, text: pattern.split(text),
    "sub": lambda pattern, text: pattern.sub(text[:0], text),
    "subn": lambda pattern, text: pattern.sub(text[:0], text),
}

ANY_METHOD = {"match", "fullmatch", "search", "findall"}
"""What stands for all where a pattern is passed on; `sub` and `split` look as `findall` does."""

SIZES = (16, 20, 24, 32, 64, 128, 512, 2048, 8192, 32_768)
"""Characters; small ones first, on which what is worse than quadratic already shows."""
HANDFUL = 128
"""What takes noticeable time for so few needs no comparison, and might not live to see one."""
SLOW_S = 0.006
"""What takes no longer, at the largest size, needs no second look."""
TOO_SLOW_S = 0.1
"""What has got here may not be quadratic for a while only."""
TRIES = 3
MANY = 8
"""A repetition that ends before this one has nothing to multiply."""


# Finding


@dataclass
class Use:
    """A pattern, where it stands, and by which methods the code applies it."""

    name: str
    pattern: re.Pattern[Any]
    methods: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Call:
    """A call of a function of `re`: in which file and function ('' for none), and of what."""

    file: str
    function: str
    name: str
    text: str | bytes | None
    flags: int

    @property
    def is_found_by_its_text(self) -> bool:
        """Whether it names its pattern itself, so that it need not be looked for elsewhere."""
        return self.text is not None


def calls() -> list[Call]:
    """Every call of `re.compile`, `re.search` and so on, in all files of the package."""
    return [call for file, tree in _trees().items() for call in _calls(file, tree)]


def _calls(file: str, tree: ast.Module) -> Iterator[Call]:
    for function, node in _within(tree, ""):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=name)) if (
                name in METHODS or name in MAKERS
            ):
                yield Call(file, function, name, _text(node.args[0]), _flags(name, node))


def _within(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Each node, with the outermost function that it is in."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        inner = function or (getattr(child, "name", "") if is_function else "")
        yield inner, child
        yield from _within(child, inner)


def _text(node: ast.expr) -> str | bytes | None:
    """The pattern that an expression says, None where it is made of others."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    return None


def _flags(name: str, call: ast.Call) -> int:
    given = {word.arg: word.value for word in call.keywords}.get("flags")
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(name, 2)
    given = given or (call.args[place] if len(call.args) > place else None)
    if given is None:
        return 0
    names = {node.attr for node in ast.walk(given) if isinstance(node, ast.Attribute)}
    return int(sum(getattr(re, name) for name in names))


def is_compile(node: ast.AST) -> bool:
    """Whether it is a call of `re.compile`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr="compile")):
            return True
    return False


def target(node: ast.stmt) -> str:
    """The name that a statement gives to a value, '' for a statement that gives none."""
    match node:
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            return name
    return ""


def modules() -> Iterator[tuple[str, Any]]:
    """Every module of the package, as its file is called."""
    for found in pkgutil.walk_packages([str(PACKAGE)], "sm."):
        if found.name == "sm.__main__":
            continue
        module = importlib.import_module(found.name)
        yield str(Path(str(module.__file__)).relative_to(PACKAGE)), module


def held() -> list[Use]:
    """The patterns that modules hold, under a name of theirs or in a table."""
    found: list[Use] = []
    for file, module in modules():
        own = {target(node) for node in _trees()[file].body}  # what is imported is another's
        for name in own & set(vars(module)):
            found += [Use(f"{file}: {name}", one) for one in _patterns(vars(module)[name])]
    return found


def _patterns(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | frozenset | set):
        yield from chain.from_iterable(map(_patterns, value))
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_patterns, (*value, *value.values())))


def applied(file: str, name: str) -> set[str]:
    """By which methods the code applies the pattern of that name; all where it is passed on."""
    module = f"sm.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
    found = set()
    for other, known in _known().items():
        found |= known.behind_a_dot.get(name, set())
        if other == file or (module, name) in known.imported:
            found |= known.by_name.get(name, set())
    return found


@functools.cache
def _trees() -> dict[str, ast.Module]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in paths}


@dataclass
class _Names:
    """Which methods of patterns a file calls on which names, and what it imports."""

    by_name: dict[str, set[str]] = field(default_factory=dict)
    behind_a_dot: dict[str, set[str]] = field(default_factory=dict)
    imported: set[tuple[str | None, str]] = field(default_factory=set)


@functools.cache
def _known() -> dict[str, _Names]:
    return {file: _names(tree) for file, tree in _trees().items()}


def _names(tree: ast.Module) -> _Names:
    found, bases, bare = _Names(), set(), []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(name) as base, attr=method):
                bases.add(id(base))
                found.by_name.setdefault(name, set()).update({method} & set(METHODS))
            case ast.Attribute(value=ast.Attribute(attr=name), attr=method):
                found.behind_a_dot.setdefault(name, set()).update({method} & set(METHODS))
            case ast.ImportFrom(module=module):
                found.imported.update((module, alias.name) for alias in node.names)
            case ast.Name(ctx=ast.Load()):
                bare.append(node)
    for node in bare:
        if id(node) not in bases:
            found.by_name.setdefault(node.id, set()).update(ANY_METHOD)
    return found


def uses(made: Sequence[Use]) -> list[Use]:
    """Every pattern with the methods by which it is applied; `made`: those made while it runs."""
    for use in (found := held()):
        file, _, name = use.name.partition(": ")
        use.methods = applied(file, name) or ANY_METHOD
    for call in calls():
        if call.text is not None and call.name in METHODS:
            pattern = re.compile(call.text, call.flags)
            found.append(Use(f"{call.file}: {call.function}", pattern, {call.name}))
    return [*found, *made]


# Hostile inputs

ALPHABET = " \n\r\t-#:/.,=_ax0'\"\\[](){}<>`*;@\x00\x1b\x85\u2028٣é"
"""What one pattern or another gives a meaning to."""
CLASSES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
}


def hostile(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Beginning, what is repeated, and end, of inputs on which this pattern may take long."""
    tree = PARSER.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    whole = _sample(tree)
    found = [("", pump, end) for pump in (*_letters(tree), whole, whole[:-1]) for end in ("", "\0")]
    for before, bodies in _repeats(tree, ""):
        for body in bodies:
            found += [(before, body, "\0"), (before, body, ""), ("", body, "\0")]
            found += [("", before + body, "\0"), ("\n", before + body * 40, "\0")]
        found += [(before, "".join(bodies), "\0"), ("", before + "".join(bodies) * 20, "")]
    found += [("", blank, "") for blank in (" ", "\n", "\r", "\t", " \n", "\r\n", "\n\r", "\u2028")]
    return [one for one in dict.fromkeys(found) if one[1]]


def misread_before_3_11_5(pattern: re.Pattern[Any]) -> bool:
    """Whether a possessive repetition is of something that can match in more than one way.

    Python before 3.11.5 matches these wrongly (gh-106052).
    """

    def walk(tree: Any) -> bool:
        for op, value in tree:
            parts = list(_parts(value))
            if str(op) == "POSSESSIVE_REPEAT" and any(map(_has_a_choice, parts)):
                return True
            if any(map(walk, parts)):
                return True
        return False

    return walk(PARSER.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _has_a_choice(tree: Any) -> bool:
    for op, value in tree:
        varies = str(op) in ("MAX_REPEAT", "MIN_REPEAT") and value[0] != value[1]
        if varies or str(op) == "BRANCH" or any(map(_has_a_choice, _parts(value))):
            return True
    return False


def _letters(tree: Any) -> list[str]:
    return sorted({char for char in whole_text(tree) if char})


def whole_text(tree: Any) -> str:
    """The literal characters of a pattern."""
    text = ""
    for op, value in tree:
        if str(op) == "LITERAL":
            text += chr(value)
        else:
            text += "".join(whole_text(part) for part in _parts(value))
    return text


def _parts(value: Any) -> Iterator[Any]:
    """The patterns within the argument of a node."""
    if isinstance(value, PARSER.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _parts(one)


def _sample(tree: Any) -> str:
    """A text that the pattern more or less takes."""
    return "".join(_one(str(op), value) for op, value in tree)


def _one(op: str, value: Any) -> str:
    if op == "LITERAL":
        return chr(value)
    if op in ("IN", "NOT_LITERAL", "ANY"):
        return _members(op, value)[0]
    if op == "BRANCH":
        return _sample(value[1][0])
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return str(_sample(value[2]) * min(max(value[0], 1), 40))
    if op == "SUBPATTERN":
        return _sample(value[3])
    return _sample(value) if op == "ATOMIC_GROUP" else ""


def _members(op: str, value: Any) -> list[str]:
    """Some characters that a class has."""
    if op == "ANY":
        return ["x", " "]
    if op == "NOT_LITERAL":
        return [char for char in "x \n" if char != chr(value)]
    candidates = [*ALPHABET, *(chr(v[0] if isinstance(v, tuple) else v) for o, v in value
                               if str(o) in ("LITERAL", "RANGE"))]  # fmt: skip
    found = [char for char in candidates if _is_in(value, char)]
    return list(dict.fromkeys(found))[:6] or ["x"]


def _is_in(items: Any, char: str) -> bool:
    negated = str(items[0][0]) == "NEGATE"
    return negated != any(_is(str(op), value, char) for op, value in items[negated:])


def _is(op: str, value: Any, char: str) -> bool:
    if op == "LITERAL":
        return bool(ord(char) == value)
    if op == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    name = str(value)
    return CLASSES[name.replace("_NOT_", "_")](char) != ("_NOT_" in name)


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Each part that may be repeated at will: what has to stand before it, and what it takes."""
    for op, value in tree:
        name = str(op)
        if name.endswith("_REPEAT") and (value[1] == PARSER.MAXREPEAT or value[1] > MANY):
            inner = list(value[2])
            single = len(inner) == 1 and str(inner[0][0]) in ("IN", "NOT_LITERAL", "ANY")
            yield before, _members(str(inner[0][0]), inner[0][1]) if single else [_sample(inner)]
        for part in _parts(value):
            yield from _repeats(part, before)
        before += _one(name, value)


# Timing


def build(shape: tuple[str, str, str], size: int) -> str:
    """A hostile input of about `size` characters."""
    before, pump, end = shape
    return before + pump * (size // len(pump) + 1) + end


def seconds(use: Use, method: str, text: str, tries: int = 1) -> float:
    """The least processor time that the method took."""
    subject: Any = text.encode() if isinstance(use.pattern.pattern, bytes) else text
    apply, best = METHODS[method], float("inf")
    for _ in range(tries):
        began = time.process_time()
        apply(use.pattern, subject)
        best = min(best, time.process_time() - began)
    return best


def worse_than_linear(use: Use, method: str, shape: tuple[str, str, str]) -> str:
    """How the time grows where it grows faster than the input; '' where it does not."""
    for size in SIZES:
        text = build(shape, size)
        took = seconds(use, method, text)
        if size > HANDFUL and took * (SIZES[-1] / size) ** 2 < SLOW_S:
            return ""  # even if it grew with the square, the largest would not be slow
        if took > SLOW_S and seconds(use, method, text, TRIES) > SLOW_S:
            few = f"{size} characters, over {SLOW_S} s"
            return few if size <= HANDFUL else _grows(use, method, shape, size)
    return ""


def _grows(use: Use, method: str, shape: tuple[str, str, str], size: int) -> str:
    """Compares sizes where it matters; one that is held up by others is looked at again."""
    while size > HANDFUL and seconds(use, method, build(shape, size // 2), TRIES) > SLOW_S:
        size //= 2
    while True:
        one = seconds(use, method, build(shape, size), TRIES)
        four = seconds(use, method, build(shape, 4 * size), TRIES)
        if four < 8 * one:
            return ""
        if four > TOO_SLOW_S or size > 1_000_000:
            return f"{size} characters {one:.4f} s, {4 * size} {four:.4f} s"
        size *= 2
