import CardReaders
import Foundation
import Logging
public import SmartCard
import Waiting

/// The contactless reader of the kiosk, for the capabilities that need one.
public struct KioskReader: Sendable {
    /// Finds the reader.
    ///
    /// Throws `CardError`, of kind `noReader` if there is none.
    let find: @Sendable () async throws -> any CardReader
    /// The presence of the reader: the present state first, then each change.
    let presence: @Sendable () -> AsyncStream<Bool>

    /// The contactless reader among those of this machine.
    public static let automatic = KioskReader {
        try await CardReaders.Machine().reader()
    } presence: {
        let listings = CardReaders.Machine().listings()
        let (stream, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let task = Task {
            for await listing in listings { continuation.yield(listing.readers.preferred != nil) }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    /// A reader that the application has, attached until its stream of states ends.
    public static func reader(_ reader: any CardReader) -> KioskReader {
        KioskReader {
            reader
        } presence: {
            let (stream, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingNewest(1))
            let task = Task {
                do {
                    for try await _ in reader.slotStates() { continuation.yield(true) }
                } catch { logger.notice("the reader cannot be watched: \(loggable(error))") }
                continuation.yield(false)
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
            return stream
        }
    }
}

/// The session for NFC tags by the name that CoreNFC has for it, as far as an application asks whether there is one.
public enum NFCTagReaderSession {
    private static let known = Lock<Bool?>(nil)

    /// True if a contactless reader is attached.
    ///
    /// It answers at once: from the host's watch of the reader if there is one, else from the list of USB devices of
    /// this machine, in which a reader behind a network or a serial port is missing.
    public static var readingAvailable: Bool {
        known.withLock { $0 } ?? USBInterfaces.hasReader
    }

    /// Tells what a watch of the reader found.
    static func report(_ isAvailable: Bool) { known.withLock { $0 = isAvailable } }
}

/// The USB devices of this machine as sysfs lists them.
private enum USBInterfaces {
    /// True if an interface is of the class for smart cards (CCID 1.1, 4.5), or its device is a known model.
    static var hasReader: Bool {
        let root = URL(filePath: "/sys/bus/usb/devices")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
        return names.contains { name in
            func attribute(_ attribute: String) -> String? {
                let file = root.appending(path: name).appending(path: attribute)
                return (try? String(contentsOf: file, encoding: .utf8))?
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            }
            if attribute("bInterfaceClass") == "0b" { return true }
            guard let vendor = attribute("idVendor"), let product = attribute("idProduct"),
                let id = UInt32(vendor + product, radix: 16)
            else { return false }
            return Model.of(name: "", id: id)?.slots.contains(.contactless) ?? false
        }
    }
}
