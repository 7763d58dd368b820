import ContactlessMetrics
import Synchronization

/// The places where the service's metrics can be read.
final class MetricsPlaces: Sendable {
    private let socket: MetricsSocket?
    private let file: MetricsFile?
    private let writing: Task<Void, Never>?
    /// The places of this process, for a signal that ends it.
    private static let present = Mutex<MetricsPlaces?>(nil)

    private init(_ options: KioskHost, _ exposition: Exposition) async throws {
        if let path = options.metricsSocket { socket = try await MetricsSocket(path, exposition) } else { socket = nil }
        file = options.metricsFile.map { MetricsFile($0, exposition) }
        writing = file.map { file in Task { await file.keepWritten(every: .seconds(options.metricsInterval)) } }
    }

    /// Opens those that the options name.
    ///
    /// - Throws: `ToolError` for a socket that cannot be made.
    static func open(_ options: KioskHost, _ exposition: Exposition) async throws {
        let places = try await MetricsPlaces(options, exposition)
        present.withLock { $0 = places }
    }

    /// Removes the socket, and writes the file for the last time.
    static func end() async {
        guard let places = present.withLock({ $0.take() }) else { return }
        places.writing?.cancel()
        places.socket?.remove()
        await places.file?.write()
    }
}
