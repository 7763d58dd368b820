import Fuzzing
import Glibc

/// The format of all inputs.  If it is empty, the first line of each input may name it.
let format = getenv("FORMAT").map { String(cString: $0) } ?? ""

fuzz { try TraceFuzzTargets.imported((format.isEmpty ? [] : Array("\(format)\n".utf8)) + $0) }
