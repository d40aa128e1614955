"""Tables from CSV files.

cells    the cells as text, with their line numbers
plan     the kind of each column, and the choices for missing values
columns  cells as numbers, according to the plan
learnt   statistics of the training rows, and the features computed with them
"""
