import Fuzzing

fuzz(TravelDocumentFuzzTargets.parsing)
