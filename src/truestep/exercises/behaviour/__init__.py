"""Checks of written functions: one module per exercise, with the tuple `CHECKS`. Their docstrings name the behaviour.

A check gets the module of the user, and raises AssertionError with a message that teaches.
"""
