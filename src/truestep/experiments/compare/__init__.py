"""`truestep compare`: run a script with two lists of arguments over several seeds, and compare.

compare: the experiment: pairs of runs, the compared numbers and the answer
"""
