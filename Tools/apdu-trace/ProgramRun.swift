import Foundation
import SmartCardTrace
import ToolSupport

/// A program that is to be run, recorded.
struct ProgramRun {
    private let command: [String]

    init(_ command: [String]) { self.command = command }

    /// Runs it to its end, and writes the traces of its readers; blocks.
    ///
    /// - Returns: its exit status.
    /// - Throws: when a trace could not be written, after the program has ended.
    func record(to output: RecordingOutput) throws -> Int32 {
        // Report problems with the file before the program starts.  The file itself is made when there is a reader, so
        // that a program that cannot run destroys no trace.
        try NewFile.checkWritable(output.file.output, replacing: output.file.force)
        var files: [Int: String] = [:]
        var recorded: [RecordedFile] = []
        var number = 0
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let recorder = ProgramRecorder(start: UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)) { index in
            // What has come to be there meanwhile, or belongs to another recording, stays; and so does this recording.
            while !output.file.force, TraceFile.isThere(Self.name(output.file.output, number)) { number += 1 }
            let file = Self.name(output.file.output, number)
            number += 1
            files[index] = file
            recorded.append(output.recorded(to: file))
            return try recorded[recorded.count - 1].writer()
        }
        let socket = try EventSocket { process, message in recorder.take(message, from: process) }
        let status = try ForegroundProgram(command, environment: try socket.environment())
            .wait(watching: { socket.descriptors }) { socket.take() }
        // What it had to tell is there before its end is.
        while socket.take() {}
        recorder.end()
        socket.close()
        for file in recorded { try file.finish() }

        if recorder.readers.isEmpty {
            Terminal.remark(
                socket.processCount == 0
                    ? "the program made no PC/SC call that could be recorded" : "the program has used no reader")
        }
        for (index, reader) in recorder.readers.enumerated() {
            guard let file = files[index], file != output.file.output else { continue }
            Terminal.remark("reader “\(reader)” is in \(file)")
        }
        if socket.lostCount > 0 {
            throw ToolError.usage(
                "\(socket.lostCount) calls are missing from the trace",
                """
                Let apdu-trace run while the program does. A program that closes descriptors it has not opened loses calls, \
                and so do more processes at once than ulimit -n allows.
                """)
        }
        if let failure = recorder.failure { throw failure }
        return status
    }

    /// `tap.apdu`, `tap-2.apdu`, `tap-3.apdu`
    private static func name(_ first: String, _ index: Int) -> String {
        guard index > 0 else { return first }
        let path = first as NSString
        let suffix = path.pathExtension.isEmpty ? "" : ".\(path.pathExtension)"
        return "\(path.deletingPathExtension)-\(index + 1)\(suffix)"
    }
}
