"""Backward passes and the tape: cuts, graphs that are kept or retained, NaN and infinity."""
