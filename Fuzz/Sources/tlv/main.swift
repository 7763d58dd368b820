import Fuzzing

fuzz(FuzzTargets.tlv)
