import Fuzzing

fuzz(TraceFuzzTargets.redaction)
