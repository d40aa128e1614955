"""Softmaxes with a use that shows their dimension, on the tape of a loss.

weighted_sums: the weights of self-attention by hand, and scores that labels pick from
"""
