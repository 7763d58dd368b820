import Fuzzing

fuzz(TraceFuzzTargets.imported)
