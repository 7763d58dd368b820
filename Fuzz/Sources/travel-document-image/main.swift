import Fuzzing

fuzz(TravelDocumentImageFuzzTargets.image)
