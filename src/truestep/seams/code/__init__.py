"""Other code in place of that of a function, which stays the same object.

weaving: a method of torch, with its source and our calls woven in
functions: functions of the program, with calls that are passed to a hook
"""
