"""Shared by all probes.

probe: base class of probes, and `sees`, which decorates their methods
scene: the state that probes share; emits events
listener: functions of the session that the scene calls
sampling: sampled steps, and the time of close reading
object_numbers: numbers of objects
losses: the latest loss, and graphs that stay in memory
repetition: coasting over steps that repeat
sites: lines of the user's code
names: names of variables and functions in the user's source
guards: branches for a new best loss or accuracy
local_variables: local variables of frames
called: detect that any module is called
values: tensors with readable values
unseen: hide the reads of probes from modes and tensor classes of the script
"""
