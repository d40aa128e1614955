"""Remote storage: a mirror of the checkpoints of a run, at any URL of fsspec.

storage  files below a URL: listed, read, uploaded, downloaded, removed
claim    owner.json: the process that writes the mirror; the latest claim wins
copies   the checkpoints in a mirror, and the download of one of them
opening  the start of a run with a mirror: refusals, the claim, and the download to resume from
mirror   `Mirror`: the thread that uploads finished checkpoints and removes old ones
fetched  a local copy of the checkpoint or file at a URL, for `load_weights`, `init_from=` and `resume=`
"""
