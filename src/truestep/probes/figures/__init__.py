"""Figures of an evaluation by their names: recall, precision, F1 and the like, perplexities and bits.

claims         the figures that names and labels claim, in the source and in variables
counts         predictions and targets of the calls of an evaluation, counted by class
collected      predictions of all batches in lists, beside the targets that they are compared with
pairs          variables that the source compares with each other
likelihood     losses of an evaluation in nats
plain          predictions as the scores show them, beside those of the program
choices        the figure by which a program chooses its weights
chosen_numbers  numbers that a program chooses by samples of its test
function_ends  values that a function computes at the end of an evaluation, and returns
of_tests       figures that the statements around an evaluation call those of a test
named          the figures that variables and printed expressions hold after an evaluation, next to both
"""
