import Fuzzing

fuzz(FrameFuzzTargets.frames)
