"""The program of the fresh process: it loads an export, calls it, and compares its outputs with those of the model.

python -m truestep.export.child FOLDER FORMAT REFERENCE RESULT
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

from truestep.export.formats import FILES, format_of
from truestep.export.outputs import compared, leaves


def main(folder: Path, name: str, reference: Path, result: Path) -> None:
    """Compare the outputs, and write the result as JSON.

    Args:
        folder: of the export.
        name: its format.
        reference: calls, outputs of the model, and the modules that must not be imported here.
        result: file to write.
    """
    held: dict[str, Any] = torch.load(reference, weights_only=True)
    torch.set_num_threads(held["threads"])
    sys.path[:0] = held["path"]
    rows: list[dict[str, Any]] = []
    document: dict[str, Any] = {"runtime": "", "error": "", "rows": rows}
    try:
        call, document["runtime"] = format_of(name).load(folder / FILES[name])
    except Exception as error:  # runtimes raise many types: the parent shows them
        document["error"] = f"{type(error).__name__}: {error}"
    else:
        for args, kwargs, expected in held["calls"]:
            try:
                with torch.no_grad():
                    outputs = leaves(call(args, kwargs))
            except Exception as error:
                said = " ".join(str(error).split())
                fault = f"{type(error).__name__}: {said[:160]}"
                rows.append({"fault": fault, "raised": True, "largest": math.inf, "relative": math.inf})
                continue
            rows.append(compared(expected, outputs))
    document["imported"] = [module for module in held["forbidden"] if module in sys.modules]
    result.write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
