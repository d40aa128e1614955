"""Remedies of findings as changes of a script from outside: one per file."""
