/// A connection to a reader itself, for commands such as `FF 00 48 00 00`, held by whoever uses its chip, lights or parameters.
///
/// It needs no card.  One that is let go without ``close()`` ends by itself.
public protocol ReaderLink: Sendable {
    /// Sends a command to the reader and returns its answer as it is: readers leave out the status word at times.
    ///
    /// - Throws: ``CardError``, of kind `unsupported` where no way leads to the reader.
    func transmit(_ command: [UInt8]) async throws -> [UInt8]

    /// Gives the reader back.  Afterwards every command fails; a second call does nothing.
    func close() async
}

extension CardReader {
    /// A link that connects anew for each command.
    public func open(exclusively: Bool) async throws -> any ReaderLink { ConnectionlessLink(self) }

    /// Opens a link, and closes it when `body` is done, however that ends.
    ///
    /// - Parameter exclusively: as in ``open(exclusively:)``.
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

/// The link of readers that this process holds anyhow.
private struct ConnectionlessLink: ReaderLink {
    private let reader: any CardReader

    init(_ reader: any CardReader) { self.reader = reader }

    func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await reader.transmitToReader(command) }
    func close() async {}
}
