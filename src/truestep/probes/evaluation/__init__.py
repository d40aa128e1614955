"""Uses of the results of a model, read from the statements around its calls.

loops        the loop around a call: a sum that each pass overwrites
last_pass    a metric of the last batch of such a loop
comparisons  compares results with targets: shapes, dimensions, scores in place of classes, rows of other samples
averages     averages over a loop: the sums of its passes, and their divisors
scales       predictions and targets of a figure next to the targets of the training: their scale, their padding
units        units of values: differences, their sizes, sums and means of these
statements   repeats the statements after a call on copies
expressions  values of their expressions, with functions of the user
functions    functions that expressions call, and their variables
libraries    functions of numpy, math and scikit-learn that are repeated
values       values of the repeated statements, and the operations that are repeated
figures      figures of an evaluation that variables hold
quotients    quotients that a program computes of its counters
chosen       rows of one result that the loss and the evaluation choose
rows         rows of a tensor of samples that are selected
"""
