"""Commands for learning.

- `exercise`: write an exercise, check it, show its hint or its solution.
- `exercise_texts`: the printed texts of `exercise`.
- `new`: write a training program to start from.
"""
