"""The syntax of a file and edits of it, with libcst.

program: the syntax tree with positions and parents; nodes at the places of a finding
names: what names stand for: imports, assignments, classes
edits: changes of expressions and statements, made in one pass
loops: the loop around a statement, and calls in it
moves: statements that move, and what keeps them where they are
"""
