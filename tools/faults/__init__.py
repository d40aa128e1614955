"""Parts of `tools/plant_faults.py`.

planting      places of faults in the source, and the source with a fault or with marks
marks         module in the marked tree: records which test reaches which mark
reached       pytest plugin of the marked run: the current test, its processor time and its shared fixtures
selection     the tests that reach a fault, run in a fork of this process
"""
