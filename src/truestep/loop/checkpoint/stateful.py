"""The interface of objects with a state in the checkpoints."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Load a state."""
