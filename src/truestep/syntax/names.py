"""Qualified names: the function or class of a library that an expression of a file names."""

from __future__ import annotations

import ast
import functools
import re

_SHORTER = (
    (re.compile(r"^torch\.nn\.modules\.\w+\.(?=[A-Z])"), "torch.nn."),
    (re.compile(r"^torch\.nn\.parameter\."), "torch.nn."),
    (re.compile(r"^torch\.nn\.utils\.clip_grad\."), "torch.nn.utils."),
    (re.compile(r"^torch\.optim\.(?!lr_scheduler|swa_utils)[a-z_]+\.(?=[A-Z])"), "torch.optim."),
    (re.compile(r"^torch\.utils\.data\.(?:dataloader|dataset|sampler|distributed)\."), "torch.utils.data."),
    (re.compile(r"^torch\.autograd\.grad_mode\."), "torch."),
    (re.compile(r"^torch\.autograd\.(?=no_grad|enable_grad|set_grad_enabled)"), "torch."),
    (re.compile(r"^torch\.(?:cuda\.)?amp\.grad_scaler\."), "torch.amp."),
    (re.compile(r"^torch\.(?:cuda\.)?amp\.autocast_mode\."), "torch.amp."),
    (re.compile(r"^torch\.cuda\.amp\.(?=autocast$|GradScaler$)"), "torch.amp."),
    (re.compile(r"^torch\.nn\.parallel\.distributed\."), "torch.nn.parallel."),
    (re.compile(r"^pytorch_lightning\b"), "lightning.pytorch"),
)
"""Other places of a name in torch, and the documented one."""


def dotted(node: ast.AST) -> str:
    """Return a chain of names and attributes as text; "" for other expressions.

    >>> dotted(ast.parse("self.net.head", mode="eval").body)
    'self.net.head'
    """
    if type(node) is ast.Name:
        return node.id
    if type(node) is not ast.Attribute:
        return ""
    text, node = node.attr, node.value
    while type(node) is ast.Attribute:
        text, node = f"{node.attr}.{text}", node.value
    return f"{node.id}.{text}" if type(node) is ast.Name else ""


def spelled(node: ast.AST) -> str:
    """Return a chain of names, also with an element of it at the end, as text; "" for other expressions.

    >>> spelled(ast.parse("self.optimizers['critic']", mode="eval").body)
    "self.optimizers['critic']"
    """
    if type(node) is ast.Subscript and (text := dotted(node.value)):
        return f"{text}[{ast.unparse(node.slice)}]"
    return dotted(node)


@functools.lru_cache(maxsize=4096)
def documented(name: str) -> str:
    """Return the name under which a library documents a function or class.

    >>> documented("torch.optim.adam.Adam"), documented("torch.nn.modules.loss.MSELoss")
    ('torch.optim.Adam', 'torch.nn.MSELoss')
    """
    if name.startswith(("torch.", "pytorch_lightning")):
        for pattern, shorter in _SHORTER:
            name = pattern.sub(shorter, name)
    return name


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import binds, each with its qualified name; a relative one begins with a dot."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
            for alias in node.names
        }
    module = "." * node.level + (node.module or "")
    return {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names if alias.name != "*"}
