"""Variables of the program: the values that they hold, and the statements that make them.

arrays      tensors, arrays and lists of samples that variables hold
origins     the line that makes a variable
selected    use of these in the source of the program
selections  masks and indices of the rows of a training, a validation or a test
"""
