"""Copies of the program's objects, and the calls that are repeated on them.

call     arguments of a call, and the ones with a row for each sample
objects  deep copies of the program's objects, without side effects
purity   analysis of code for side effects
"""
