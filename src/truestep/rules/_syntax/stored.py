"""Files that `torch.save` writes and `torch.load` reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Call, Kind, Program, Suspicion, dotted

_BUFFERS = ("io.BytesIO", "tempfile.TemporaryFile", "tempfile.SpooledTemporaryFile")
_DOWNLOADS = {
    "cached_download", "cached_path", "download", "download_url", "hf_hub_download", "load_file_from_url",
    "snapshot_download", "urlopen", "urlretrieve",
}  # fmt: skip
"""Last parts of the names of functions that return the path of a file from elsewhere."""
_OF_A_MODEL = re.compile(r"state|dict|weight|param|config|path|name|info|output|result|metric|ckpt|checkpoint")
"""Parts of names of other objects, such as "model_state" and "model_config"."""
_FROM_URL = "torch.hub.load_state_dict_from_url"


def unsafe_load(program: Program) -> Iterator[Suspicion]:
    """Yield reads of files that may run code, if this program does not write them."""
    for call in program.named("torch.load", _FROM_URL):
        given = call.argument(-1, "weights_only")
        file = call.argument(0, "f", "url")
        if file is None or not isinstance(given, ast.Constant) or given.value is not False:
            continue
        if _in_memory(file, call, program) or _used_by(program, "save", file, call):
            continue
        elsewhere = call.name == _FROM_URL or _downloaded(file, call, program)
        yield Suspicion(
            call.node,
            f"`weights_only=False` runs the code that a file {'from elsewhere ' if elsewhere else ''}contains",
            "unpickles any object",
            "leave out the argument, and allow single classes with `torch.serialization.add_safe_globals`",
            confidence=Confidence.MEDIUM if elsewhere else Confidence.LOW,
        )


def whole_model_pickled(program: Program) -> Iterator[Suspicion]:
    """Yield saves of a model itself, alone or in a dict, if this program does not load the file again."""
    for call in program.named("torch.save"):
        saved, file = call.argument(0, "obj"), call.argument(1, "f")
        if saved is None or file is None or _in_memory(file, call, program):
            continue
        if _used_by(program, "load", file, call):
            continue
        for value in _contents(saved, call, program):
            found = program.kinds.of(value, call.context, call.order)
            if found is None or found.kind is not Kind.MODEL:
                continue
            text = ast.unparse(value)
            if _is_other(value, call, program) or (not found.sure and _OF_A_MODEL.search(text.rpartition(".")[2])):
                continue
            yield Suspicion(
                call.node,
                f"`torch.save` pickles the model `{text}` itself: the file has the name of its class, not its code",
                "saves a reference to the code",
                "save its `state_dict()`, and load it into a model that the program builds",
                confidence=Confidence.MEDIUM if found.sure else Confidence.LOW,
            )
            break


def _contents(saved: ast.expr, call: Call, program: Program) -> Iterator[ast.expr]:
    """Yield a saved object, or the values of a saved dict that are names."""
    value = program.values.origin(saved, call.context, call.order)[0]
    if not isinstance(value, ast.Dict):
        yield saved
        return
    if value is saved:
        yield from (one for one in value.values if isinstance(one, ast.Name | ast.Attribute))


def _is_other(value: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a name stands for a state dict, or for a compiled program, which `torch.save` refuses."""
    origin = program.values.origin(value, call.context, call.order)[0]
    made = program.call_at.get(origin)
    return made is not None and ("state" in made.method or made.name.startswith("torch.jit."))


def _in_memory(file: ast.expr, call: Call, program: Program) -> bool:
    value, where, _ = program.values.origin(file, call.context, call.order)
    return isinstance(value, ast.Call) and program.reader.qualified(value.func, where.scope) in _BUFFERS


def _downloaded(file: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a path is the result of a function that downloads a file."""
    value = program.values.origin(file, call.context, call.order)[0]
    found = program.call_at.get(value)
    return found is not None and found.method in _DOWNLOADS


def _used_by(program: Program, verb: str, file: ast.expr, call: Call) -> bool:
    """Return True if a function with this verb in its name gets the same path, or another one in the same folder."""
    mine = _written(file, call, program)
    return any(
        mine & _written(value, other, program)
        for method in program.methods_called()
        if verb in method
        for other in program.method(method)
        if other is not call
        for value in other.arguments()
    )


def _written(file: ast.expr, call: Call, program: Program) -> set[str]:
    """Return the texts of a path and of its folder: as they are written, and the value of a name."""
    files = [file, program.values.origin(file, call.context, call.order)[0]]
    files += [
        opened.node.args[0]
        for opened in call.context.withs
        if opened.method == "open" and opened.node.args and not isinstance(file, ast.Constant)
    ]
    texts = {ast.unparse(one) for one in files if not isinstance(one, ast.Constant) or isinstance(one.value, str)}
    for one in files:
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == "join" and one.args:
            texts.add(f"in {ast.unparse(one.args[0])}")
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
            texts.add(f"in {ast.unparse(one.left)}")
    return texts
