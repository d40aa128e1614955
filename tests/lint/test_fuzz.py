"""Random changes of programs: no input crashes lint, and none takes long."""

import random
import time

from programs import REPOSITORY

from truestep.lint.checking import check
from truestep.lint.engine import code_of, inspecting

RULES = tuple(inspecting().values())
PROGRAMS = sorted((REPOSITORY / "proofs").glob("*/bad.py"))
ROUNDS = 250
LIMIT_S = 2.0
"""Seconds of the processor for one program of 40 lines, which takes some milliseconds."""
WORDS = (
    "(", ")", "[", "]", ":", "\n", "    ", "=", ".", ",", "*", "**", "lambda: ", "await ", "async ", "yield ", "del ",
    "global x\n", "x := ", "for x in y: ", "if x: ", "else: ", "try:\n", "with ", "match x:\n",
    "import torch as self\n",
    "self", "self.", "optimizer", "model", "loss", "None", "1e999", "'", '"""', "\\", "#", "\t", "é", "\x0c", "🦙",
    "torch.nn.Sequential(*x)", "model.parameters()", "class A(A): pass\n", "def f(f=f): return f(f)\n", "x = x\n",
)  # fmt: skip


def changed(text, rng):
    """Return a text with some lines and pieces moved, doubled, removed or inserted."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(lines)) if lines else 0
        match rng.randrange(6):
            case 0:
                lines[place:place] = [lines[rng.randrange(len(lines))]] if lines else []
            case 1:
                del lines[place : place + rng.randint(1, 3)]
            case 2 if lines:
                lines[place] = " " * rng.choice((0, 4, 8, 12)) + lines[place].lstrip()
            case 3 if lines:
                cut = rng.randrange(len(lines[place]) + 1)
                lines[place] = lines[place][:cut] + rng.choice(WORDS) + lines[place][cut:]
            case 4 if lines:
                other = rng.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
            case _ if lines:
                begin = rng.randrange(len(lines[place]) + 1)
                lines[place] = lines[place][:begin] + lines[place][begin + rng.randint(1, 8) :]
    return "".join(lines)


def test_no_change_of_a_program_crashes_or_hangs():
    rng = random.Random(7)
    parsed = 0
    for number in range(ROUNDS):
        text = changed(rng.choice(PROGRAMS).read_text(encoding="utf-8"), rng)
        started = time.process_time()
        results = check([code_of("a.py", text)], RULES)
        assert results.internal_errors == (), f"round {number}\n{text}\n{results.internal_errors[0]}"
        assert time.process_time() - started < LIMIT_S, f"round {number}\n{text}"
        parsed += not results.problems
    assert parsed > ROUNDS // 5


def test_no_bytes_crash():
    rng = random.Random(11)
    for number in range(100):
        data = bytearray(rng.choice(PROGRAMS).read_bytes())
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        for path in ("a.py", "a.ipynb"):
            assert check([code_of(path, bytes(data))], RULES).internal_errors == (), number


def test_long_code_takes_time_in_proportion():
    body = "    x = layer(x)\n    if x.sum() > 0:\n        x = x + 1\n"
    text = "import torch\nfor i in loader:\n" + body * 1500 + "    loss.backward()\n    optimizer.step()\n"
    started = time.process_time()
    check([code_of("a.py", text)], RULES)
    assert time.process_time() - started < 20
