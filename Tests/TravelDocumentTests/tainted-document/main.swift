import CardReaders
import Foundation
import SmartCard
import TravelDocument

// Reads a travel document, as a kiosk does, says whether it is believed, and stays: DocumentTaintTests look for its holder in
// this process's memory.  The argument is a text to be found; standard input has the machine readable zone.

// So that looking is known to find something: in memory that is not wiped.
let text = Array(CommandLine.arguments[1].utf8)
let control = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 1)
control.copyBytes(from: text)

func read() async throws {
    // Not readLine(): the buffer of stdin is never freed.
    let input = try FileHandle.standardInput.readToEnd() ?? Data()
    let key = AccessKey(try MachineReadableZone(String(decoding: input, as: UTF8.self)))
    let machine = Machine()
    let reader = try await machine.reader()
    _ = try await reader.waitForCard()
    let card = try await reader.connect()
    let chip = TravelDocumentChip(over: Stack(for: reader).over(card), connection: card)
    let reading = try await chip.read(dataGroups: [1, 2, 11], with: key)
    print("read: \(reading) \(reading.zone?.documentNumber.count ?? 0) \(reading.failures)")
    print("belief: \(reading.belief(trust: TrustList(), at: .now).findings)")
    await card.disconnect(.reset)
    await machine.close()
}

// A task's variables are in memory that is freed, and wiped, when it ends.
if case .failure(let error) = await Task(operation: read).result { print("failed: \(error)") }
print("done")
fflush(nil)
try await Task.sleep(for: .seconds(600))
