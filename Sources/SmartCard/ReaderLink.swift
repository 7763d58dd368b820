/// A connection to the reader itself, for commands such as `FF 00 48 00 00` to its chip, lights or parameters.
///
/// It needs no card.  A link that is released without ``close()`` ends by itself.
public protocol ReaderLink: Sendable {
    /// Sends a command to the reader and returns the unmodified answer.  Some readers omit the status word.
    ///
    /// - Throws: ``CardError``, of kind `unsupported` if no route to the reader exists.
    func transmit(_ command: [UInt8]) async throws -> [UInt8]

    /// Powers off the card of a service that shares the reader, after commands that used the field.
    ///
    /// The card has lost its selection.  The service does not know that; it finds the card anew when it is powered again.
    /// By default, nothing happens: nobody shares the reader.
    func releaseCard() async

    /// Releases the reader.  Later commands fail; a second call does nothing.
    func close() async
}

extension ReaderLink {
    public func releaseCard() async {}
}

extension CardReader {
    /// Opens a link that connects anew for each command.
    public func open(exclusively: Bool) async throws -> any ReaderLink { ConnectionlessLink(self) }

    /// Opens a link and closes it when `body` returns or throws.
    ///
    /// - Parameters:
    ///   - exclusively: as in ``open(exclusively:)``.
    ///   - isolation: the actor on which `body` runs; nil for none.
    ///   - body: uses the link, and must not keep it.
    public func withLink<Result>(
        exclusively: Bool = false, isolation: isolated (any Actor)? = #isolation,
        _ body: (any ReaderLink) async throws -> Result
    ) async throws -> Result {
        let link = try await open(exclusively: exclusively)
        do {
            let result = try await body(link)
            await link.close()
            return result
        } catch {
            await link.close()
            throw error
        }
    }
}

/// A link to a reader that this process holds anyway.
private struct ConnectionlessLink: ReaderLink {
    private let reader: any CardReader

    init(_ reader: any CardReader) { self.reader = reader }

    func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await reader.transmitToReader(command) }
    func close() async {}
}
