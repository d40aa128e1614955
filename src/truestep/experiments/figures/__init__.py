"""Numbers of two variants, and the verdict on them; shared by prove, compare, tune and bench-inference.

figure: one compared number: its interval, and the verdict
printed: numbers that the script prints, and their better direction
speedup_statistics: interval and verdict of ratios of times, and the difference of losses
"""
