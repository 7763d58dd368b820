import Fuzzing
import SmartCardSimulator

// The input is a card file.

fuzz { bytes in
    guard let card = try? CardFile(parsing: bytes).makeCard() else { return }
    _ = card.exchange([0x00, 0xA4, 0x04, 0x00, 0x00])
}
