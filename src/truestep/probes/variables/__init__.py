"""Variables of the program: the values that they hold, and the statements that make them.

arrays   tensors, arrays and lists of samples that variables hold
origins  the line that makes a variable
"""
