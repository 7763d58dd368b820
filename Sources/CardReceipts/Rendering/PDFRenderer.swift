public import Foundation
import Waiting

/// A renderer to PDF.  It runs WeasyPrint, which Debian packages.
public struct PDFRenderer: Sendable {
    public let paper: HTMLRenderer.Paper
    private let program: String
    private let limit: Duration

    /// Creates a renderer.
    ///
    /// - Parameters:
    ///   - paper: the size of the paper.
    ///   - program: WeasyPrint's name, found in PATH, or its path.
    ///   - limit: the time limit for one document.
    public init(
        paper: HTMLRenderer.Paper = .roll, program: String = "weasyprint", limit: Duration = .seconds(120)
    ) {
        (self.paper, self.program, self.limit) = (paper, program, limit)
    }

    /// Renders the document to PDF.
    ///
    /// - Throws: ``ExternalProgramError``; `CancellationError`.
    public func render(_ document: ReceiptDocument) async throws -> Data {
        let html = HTMLRenderer(paper: paper).render(document)
        return try await ExternalProgram(
            [program, "--encoding", "utf-8", "--quiet", "-", "-"], package: "weasyprint", limit: limit
        ).output(of: Data(html.utf8))
    }
}

/// The failure of a program that receipts need.
public enum ExternalProgramError: Error, Hashable, Sendable {
    /// The program is not installed.
    case missing(program: String, package: String)
    /// The program exited with a nonzero status.
    case failed(program: String, status: Int32, message: String)
    /// The program exceeded its time limit and was stopped.
    case tooSlow(program: String, limit: Duration)
}

extension ExternalProgramError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .missing(let program, _): "\(program) is not installed"
        case .failed(let program, let status, let message):
            "\(program) failed with status \(status)" + (message.isEmpty ? "" : ": \(message)")
        case .tooSlow(let program, let limit): "\(program) took longer than \(limit)"
        }
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .missing(_, let package): "Install it: sudo apt-get install \(package)"
        case .failed(let program, _, _): "Run \(program) --version to see whether it works at all."
        case .tooSlow: "Try again when the machine has less to do."
        }
    }
}

/// A program that converts a document from standard input to standard output.
struct ExternalProgram: Sendable {
    let command: [String]
    /// The Debian package of the program.
    let package: String
    let limit: Duration

    init(_ command: [String], package: String, limit: Duration) {
        (self.command, self.package, self.limit) = (command, package, limit)
    }

    /// Runs the program.
    ///
    /// - Throws: ``ExternalProgramError``; `CancellationError`, after the program was stopped.
    func output(of input: Data) async throws -> Data {
        let name = command[0]
        guard let path = Self.path(name) else { throw ExternalProgramError.missing(program: name, package: package) }
        let folder = FileManager.default.temporaryDirectory.appending(path: "receipt-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        // Files instead of pipes, so that neither side waits for the other.
        let files = ["input", "output", "error"].map { folder.appending(path: $0) }
        try input.write(to: files[0])
        for file in files.dropFirst() { try Data().write(to: file) }

        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = Array(command.dropFirst())
        let handles = [
            try FileHandle(forReadingFrom: files[0]), try FileHandle(forWritingTo: files[1]),
            try FileHandle(forWritingTo: files[2]),
        ]
        (process.standardInput, process.standardOutput, process.standardError) = (handles[0], handles[1], handles[2])
        defer { for handle in handles { try? handle.close() } }
        let (ends, end) = AsyncStream<Void>.makeStream()
        process.terminationHandler = { _ in end.finish() }
        try process.run()

        let isInTime = await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in ends {}
                return !Task.isCancelled
            }
            group.addTask { [limit] in
                try? await Time.sleep(for: limit)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
        guard isInTime else {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            try Task.checkCancellation()
            throw ExternalProgramError.tooSlow(program: name, limit: limit)
        }
        process.waitUntilExit()
        let output = try Data(contentsOf: files[1])
        guard process.terminationReason == .exit, process.terminationStatus == 0, !output.isEmpty else {
            let message = String(decoding: try Data(contentsOf: files[2]), as: UTF8.self)
            let status = process.terminationStatus + (process.terminationReason == .exit ? 0 : 128)
            throw ExternalProgramError.failed(
                program: name, status: status,
                message: message.split(whereSeparator: \.isNewline).last.map(String.init) ?? "")
        }
        return output
    }

    private static func path(_ name: String) -> String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
