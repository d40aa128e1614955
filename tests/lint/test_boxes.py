"""Areas of intersections that two negative sides make positive, by the syntax."""

import pytest

from truestep.lint import lint

CORNERS = "low, high = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])"
SIDES = """x1, y1 = max(a[0], b[0]), max(a[1], b[1])
    x2, y2 = min(a[2], b[2]), min(a[3], b[3])"""


def found(body: str) -> list[tuple[str, int]]:
    text = "import torch\n\ndef iou(a, b, area):\n    " + body.replace("; ", "\n    ") + "\n"
    return [(one.rule, one.primary.site.line) for one in lint(text) if one.primary.site is not None]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (f"{SIDES}; inter = (x2 - x1) * (y2 - y1); return inter / (area - inter)", 6),
        (f"{SIDES}; inter = (x2 - x1 + 1) * (y2 - y1 + 1); return inter / (area - inter)", 6),
        (f"{SIDES}; w = x2 - x1; h = y2 - y1; inter = w * h; return inter / (area - inter)", 8),
        (f"{CORNERS}; inter = (high - low).prod(dim=1); return inter / (area - inter)", 5),
        (f"{CORNERS}; wh = high - low; inter = wh[:, 0] * wh[:, 1]; return inter / (area - inter)", 6),
        (f"{CORNERS}; inter = torch.prod(high - low, 1); return inter / (area - inter)", 5),
    ],
)
def test_areas_without_a_limit_are_found(body: str, line: int) -> None:
    assert found(body) == [("metric-misreported", line)]


@pytest.mark.parametrize(
    "body",
    [
        f"{SIDES}; inter = max(x2 - x1, 0) * max(y2 - y1, 0); return inter / (area - inter)",
        f"{SIDES}; if x2 < x1 or y2 < y1:;     return 0.0; inter = (x2 - x1) * (y2 - y1); return inter / area",
        f"{SIDES}; w = max(0, x2 - x1); h = max(0, y2 - y1); inter = w * h; return inter / (area - inter)",
        f"{CORNERS}; inter = (high - low).clamp(min=0).prod(dim=1); return inter / (area - inter)",
        f"{CORNERS}; wh = torch.relu(high - low); inter = wh[:, 0] * wh[:, 1]; return inter / (area - inter)",
        f"{CORNERS}; inter = (high - low).prod(1) * (high > low).all(1); return inter / (area - inter)",
        f"{CORNERS}; inter = (high - low).prod(1); inter[(high < low).any(1)] = 0; return inter / (area - inter)",
        f"{CORNERS}; meet = (low < high).all(1); inter = (high - low).prod(1); return torch.where(meet, inter, 0)",
        "low, high = torch.min(a[:, :2], b[:, :2]), torch.max(a[:, 2:], b[:, 2:]); hull = (high - low).prod(1);"
        " return hull",
        "w, h = torch.min(a[:, 0], b[:, 0]), torch.min(a[:, 1], b[:, 1]); inter = w * h; return inter / area",
        "spread = (a.max() - a.min()) * (b.max() - b.min()); return spread",
    ],
)
def test_areas_that_are_right_are_quiet(body: str) -> None:
    assert found(body) == []
