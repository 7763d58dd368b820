import Foundation
import Synchronization
import TestSupport
import Testing

@testable import KioskBridge

/// A server of the test on a Unix socket, which answers each line as it likes.
final class FakeSpeechServer: Sendable {
    /// What a line is answered with; nil: the connection ends.
    typealias Answer = @Sendable (String) -> String?

    let path: String
    private let file: Int32
    private let seen = Mutex<[String]>([])

    /// The lines that have come.
    var lines: [String] { seen.withLock { $0 } }

    init(_ answer: @escaping Answer) throws {
        let path = "/tmp/speech-\(UUID().uuidString.prefix(8))"
        let file = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        (self.path, self.file) = (path, file)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(file, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0 && listen(file, 8) == 0)
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(file, nil, nil)
                guard connection >= 0 else { return }
                self?.serve(connection, answer)
                close(connection)
            }
        }
    }

    deinit {
        shutdown(file, Int32(SHUT_RDWR))
        close(file)
        unlink(path)
    }

    private func serve(_ connection: Int32, _ answer: Answer) {
        var rest = ""
        var bytes = [UInt8](repeating: 0, count: 4096)
        while case let count = read(connection, &bytes, bytes.count), count > 0 {
            rest += String(decoding: bytes.prefix(count), as: UTF8.self)
            while let end = rest.range(of: "\r\n") {
                let line = String(rest[..<end.lowerBound])
                rest.removeSubrange(..<end.upperBound)
                seen.withLock { $0.append(line) }
                guard let text = answer(line) else { return }
                let reply = Array(text.replacing("↵", with: "\r\n").utf8)
                guard send(connection, reply, reply.count, Int32(MSG_NOSIGNAL)) == reply.count else { return }
            }
        }
    }

    /// Settings are accepted, texts are said at once.
    static let honest: Answer = { line in
        switch line {
        case "SPEAK": "230 OK RECEIVING DATA↵"
        case ".": "225-1↵225 OK MESSAGE QUEUED↵702-1↵702-1↵702 END↵"
        case _ where line.hasPrefix("SET ") || line.hasPrefix("CANCEL "): "200 OK↵"
        default: ""
        }
    }
}

/// speech-dispatcher with a synthesizer that writes down what it is to say, and takes some seconds for it.
final class RealSpeechServer: Sendable {
    static let isInstalled = Program.isInstalled("speech-dispatcher")

    let path: String
    private let folder: URL
    private let daemon: Program

    /// - Parameter seconds: the time for a text.
    init(seconds: Double) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sd-\(UUID().uuidString.prefix(8))")
        self.folder = folder
        for name in ["conf/modules", "run", "log", "home"] {
            try FileManager.default.createDirectory(
                at: folder.appending(path: name), withIntermediateDirectories: true)
        }
        // libao plays to nobody where there is no sound device.
        try Data(
            """
            LogLevel 3
            LogDir "\(folder.path)/log"
            CommunicationMethod "unix_socket"
            AddModule "words" "sd_generic" "words.conf"
            DefaultModule words
            AudioOutputMethod "libao"
            DisableAutoSpawn

            """.utf8
        ).write(to: folder.appending(path: "conf/speechd.conf"))
        try Data(
            #"""
            GenericExecuteSynth "echo \'$VOICE\' \'$DATA\' >> \#(folder.path)/said; sleep \#(seconds); echo end >> \#(folder.path)/said"
            GenericLanguage "en" "en" "utf-8"
            GenericLanguage "de" "de" "utf-8"
            GenericMaxChunkLength 2000
            GenericDelimiters "~"
            AddVoice "en" "MALE1" "english"
            AddVoice "de" "MALE1" "german"

            """#.utf8
        ).write(to: folder.appending(path: "conf/modules/words.conf"))
        let path = folder.appending(path: "run/socket").path
        self.path = path
        let (run, home) = (folder.appending(path: "run").path, folder.appending(path: "home").path)
        // A thread of Dispatch blocks signals, and what it starts inherits that.
        let unblock = "import os, signal, sys; signal.pthread_sigmask(2, []); os.execvp(sys.argv[1], sys.argv[1:])"
        daemon = try Program(
            [
                "/usr/bin/python3", "-c", unblock, "speech-dispatcher", "-s", "-C", "\(folder.path)/conf", "-S", path,
                "-P", "\(run)/pid", "-L",
                "\(folder.path)/log",
            ], environment: ["XDG_RUNTIME_DIR": run, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "HOME": home])
        // Its socket is in the folder before it listens there.
        try await daemon.wait(for: "socket", timeout: .seconds(30)) { _ in (try? SpeechSocket(path)) != nil }
    }

    /// The lines of the synthesizer: the voice and the text at the beginning, `end` at the end.
    var said: [String] {
        let text = (try? String(contentsOf: folder.appending(path: "said"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    func waitForLine(_ line: String) async throws {
        try await daemon.wait(for: line, timeout: .seconds(20)) { _ in self.said.contains(line) }
    }

    /// Ends the server, and its synthesizer with it.
    func stop() async throws {
        daemon.signal(SIGINT)
        _ = try await daemon.outcome(timeout: .seconds(20))
        try? FileManager.default.removeItem(at: folder)
    }
}
