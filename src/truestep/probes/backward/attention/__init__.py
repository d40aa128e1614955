"""Attention that is written by hand, on the tape of a loss.

weighted_sums: the dimension of the softmax, and that of the sum of the values
"""
