import Fuzzing

fuzz(TraceFuzzTargets.trace)
