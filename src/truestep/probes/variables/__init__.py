"""Variables of the program: the values that they hold, and the statements that make them.

arrays      tensors, arrays and lists of samples that variables hold
origins     the line that makes a variable
selected    what the program does with these, by its source
selections  masks and indices of the rows of a training, a validation or a test
"""
