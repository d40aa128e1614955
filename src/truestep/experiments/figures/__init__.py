"""Numbers of two variants over seeds, and the verdict on them; shared by `truestep prove` and `truestep compare`.

figure: one compared number: its interval, and the verdict
printed: numbers that the script prints, and their better direction
"""
