"""Mutants of healthy programs: one mistake planted in each, and how many of them TrueStep finds.

- `source`: a program with the roles of its names, its loops and its statements.
- `operators`: registration of operators, and the mutants that they make.
- `drops`, `moves`, `swaps`, `builds`: the operators.
- `healthy`: the healthy programs, their style and their half.
- `trial`: runs of a mutant, alone and under supervision.
- `score`: shares that were found, by operator, style and half.
"""
