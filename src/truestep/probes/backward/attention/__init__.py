"""Softmaxes and norms with a use that shows their dimension, on the tape of a loss.

unit_vectors: products of vectors with a norm of one, such as cosines by hand
weighted_sums: the weights of self-attention by hand, and scores that labels pick from
"""
