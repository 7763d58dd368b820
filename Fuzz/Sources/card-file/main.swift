import Fuzzing

fuzz(FuzzTargets.cardFile)
