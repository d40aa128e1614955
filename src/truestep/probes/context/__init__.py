"""Shared by all probes.

probe: base class of probes
scene: the shared state: numbers of objects, events, sampled steps
repetition: coasting over steps that repeat
sites: lines of the user's code
names: names of variables and functions in the user's source
local_variables: local variables of frames
called: detect that any module is called
values: tensors with readable values
unseen: hide the reads of probes from modes and tensor classes of the script
"""
