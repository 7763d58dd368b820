import SmartCard

/// Spaced hexadecimal as bytes, so that tests read as the wire does.  Not hexadecimal: no bytes, and the test fails.
func bytes(_ hex: String) -> [UInt8] { (try? [UInt8](hex: hex)) ?? [] }
