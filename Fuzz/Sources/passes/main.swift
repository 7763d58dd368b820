import Fuzzing

fuzz(PassFuzzTargets.passes)
