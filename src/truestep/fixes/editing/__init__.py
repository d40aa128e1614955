"""The syntax of a file and edits of it, with libcst.

program: the syntax tree with positions and parents; nodes at the places of a finding
names: imports, assignments and classes of the names of a file
edits: changes of expressions and statements, made in one pass
loops: the loop around a statement, and calls in it
moves: statements that move past others
"""
