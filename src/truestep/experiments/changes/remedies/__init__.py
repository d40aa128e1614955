"""Remedies of findings, applied to a script from outside: one per file, found by listing the folder."""
