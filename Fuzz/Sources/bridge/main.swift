import Fuzzing

fuzz(BridgeFuzzTargets.conversation)
