"""Data sets that are made once and read fast."""
