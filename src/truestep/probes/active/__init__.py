"""Checks that call the program's own code again, on copies, and only where the user asked for them."""

from truestep.probes.active.probe import ActiveProbe

__all__ = ["ActiveProbe"]
