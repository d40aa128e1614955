"""Calls of modules, losses and functions: modes, outputs, labels, copies and swaps."""
