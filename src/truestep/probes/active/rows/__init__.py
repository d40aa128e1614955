"""Rows of the program's own tables that its models are called on, in any style of program.

tables           tables of rows, and the places of a batch's rows in them
lookup           tables with all rows of a batch
reads            rows of inputs and targets, in training and in evaluation
pairs            inputs and targets of the same rows of tables
fetched          batches as a loader gave them, and the places of rows in them
pairing          targets next to the fetched batch
calls            calls of a step, and those that the input of a loss was computed from
orders           the same rows in another order, and its probability by chance
names            names of arrays in the source, and those that no statement reads
written          targets of losses written by hand
parts            parts of a batch that are equal: two inputs, two halves, all rows
labels           classes in the columns that targets are taken from, in training and in evaluation
scaling          tables that are scaled with the statistics of evaluation data
moments          statistics of the features of a table
columns          a target that is a feature of the input
"""
