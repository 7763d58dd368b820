import Fuzzing

fuzz(FuzzTargets.transaction)
