"""Images from files.

files   paths, classes and pixels of image files
packed  decoded images in one memory-mapped file
pixels  pixels as normalized numbers
"""
