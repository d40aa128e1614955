"""Losses of policies, on their tape.

entropies: entropies of a policy that its loss makes smaller
ratios: clipped ratios to old probabilities that are always 1
"""
