"""
Writes the figures of runs to W&B, SwanLab and Trackio, with the packages of these systems.

    python -m hone_sinks

EVENTS --> follower (one for each system) --> worker (one process for each run) --> the system's package

Nothing waits for this program: it reads the stream EVENTS, which keeps its messages for a week, and acknowledges nothing.

S1: each system has a follower, so one that is slow or away delays no other.
S2: a worker writes one run with one package. The packages keep one active run in a process, and may hang; a worker that does, or
    that dies, is ended, and another one begins again.
S3: the packages keep what they were given in memory for a while. So what was written is not remembered here: a worker that begins
    gets all events of its run again, and leaves out what the system has, which it asks the system (backends/).
S4: the position file says which event is next and which runs have not ended, whose events are read again after a restart.
"""
