import Fuzzing
import Glibc

/// What all inputs are taken for.  If it is empty, the first line of each may tell.
let format = getenv("FORMAT").map { String(cString: $0) } ?? ""

fuzz { try TraceFuzzTargets.imported((format.isEmpty ? [] : Array("\(format)\n".utf8)) + $0) }
