"""`truestep repeat`: run a script twice or more, and find the first difference and its cause.

repeat: the experiment: repeated runs, and runs in which all sources of randomness but one are controlled
sources: the sources of differences between runs, with remedies
operation: the first operation that differs
"""
