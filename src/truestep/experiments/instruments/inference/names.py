"""Names of the ways to run a trained model."""

from __future__ import annotations

EAGER = "eager"
NAMES = (
    EAGER, "with gradients", "inference_mode", "compiled", "pt2", "onnx", "aoti", "safetensors", "int8",
    "int8 compiled", "int8 pt2", "int8 onnx", "int8 aoti",
)  # fmt: skip
"""All ways, in the order of tables."""
