"""Choices that a program makes by samples of its test.

numbers  thresholds, temperatures and the like, and the figures of the test that are computed with them
results  figures of the test that are collected, one for each candidate, and the candidate taken of them
weights  weights that are kept at a new best figure, and evaluated again on the same samples
bests    whether an expression or a branch keeps the best of its candidates, and not the worst
nodes    statements in their order, and the parts of their expressions
words    words in the names of variables and functions
"""
