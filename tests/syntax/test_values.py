"""Assignments that reach a use, and the expression that a name stands for."""

import ast

import pytest

from truestep.syntax import Program


def origin(text):
    program = Program.from_text(text)
    (call,) = program.method("look")
    return ast.unparse(program.values.origin(call.node.args[0], call.context, call.order)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = f()\nlook(a)", "f()"),
        ("a = f()\nb = a\nlook(b)", "f()"),
        ("a = f()\na = g()\nlook(a)", "g()"),
        ("a, b = f(), g()\nlook(b)", "g()"),
        ("a = f()\nlook(a)\na = g()", "f()"),
        ("a = f()\ndef h(x):\n    look(x)\nh(a)", "f()"),
        ("a = f()\ndef h():\n    look(a)", "f()"),
        ("if c:\n    a = f()\n    look(a)\nelse:\n    a = g()", "f()"),
        ("for i in r:\n    a = f()\n    look(a)", "f()"),
        ("while c:\n    a = f(a)\n    look(a)", "f(a)"),
        ("d = {'a': f(), 'b': g()}\nlook(d['b'])", "g()"),
        ("d = [f(), g()]\nlook(d[0])", "f()"),
        ("d = {'a': f()}\nb = d['a']\nlook(b)", "f()"),
    ],
)
def test_name_is_followed(text, expected):
    assert origin(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a = f()\nif c:\n    a = g()\nlook(a)",
        "a = f()\nfor i in r:\n    look(a)\n    a = g()",
        "def h(a):\n    look(a)\nh(1)\nh(2)",
        "for a in r:\n    look(a)",
        "with f() as a:\n    look(a)",
    ],
)
def test_name_with_several_values_is_not_followed(text):
    assert origin(text) == "a"


@pytest.mark.parametrize(
    "text",
    [
        "d = {'a': f(), **more}\nlook(d['a'])",
        "d = {'a': f()}\nd['a'] = g()\nlook(d['a'])",
        "d = {'a': f()}\nd.update(a=g())\nlook(d['a'])",
        "d = [f()]\nlook(d['a'])",
        "d = [f()]\nlook(d[7])",
        "d = h()\nlook(d['a'])",
    ],
)
def test_an_element_that_may_change_is_not_followed(text):
    assert origin(text).startswith("d[")


def test_a_name_that_is_assigned_from_itself_ends():
    assert origin("a = b\nb = a\nlook(a)") in ("a", "b")


@pytest.mark.parametrize(("name", "resolved"), [("model", True), ("thing", False)])
def test_a_method_is_that_of_the_only_model_if_the_parameter_has_the_name_of_one(name, resolved):
    program = Program.from_text(
        "from torch import nn\nclass Net(nn.Module):\n    def encode(self, x):\n        return x\n"
        f"def look({name}, x):\n    return {name}.encode(x)\n"
    )
    (call,) = program.method("encode")
    assert (program.resolve(call) is not None) == resolved
