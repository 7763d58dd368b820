import Foundation

/// A way in which a terminal shows pictures.
package enum PictureProtocol: String, CaseIterable, Sendable {
    case kitty, sixel

    /// The protocol of a terminal; nil if none is known.
    ///
    /// - Parameter environment: the variables that the terminal has set.  In a terminal multiplexer, which passes no
    ///   pictures of kitty on, they are those of the terminal around it.
    /// - Parameter attributes: the terminal's answer to the question for its attributes; asked for only if the environment
    ///   leaves it open.
    package init?(environment: [String: String], attributes: () -> [Int]) {
        let isKitty = environment["KITTY_WINDOW_ID"]?.isEmpty == false || environment["TERM"] == "xterm-kitty"
        let isMultiplexed = ["TMUX", "STY"].contains { environment[$0]?.isEmpty == false }
        if isKitty, !isMultiplexed {
            self = .kitty
        } else if environment["TERM"] != "dumb", attributes().contains(Self.sixelGraphics) {
            self = .sixel
        } else {
            return nil
        }
    }

    /// The attribute of terminals with sixel graphics, in the answer to DA1 (DEC STD 070, 4-18).
    private static let sixelGraphics = 4
}

extension Terminal {
    /// The protocol of the terminal that is standard output; nil if it is none, or shows no pictures.
    package static var pictureProtocol: PictureProtocol? {
        guard outputIsTerminal else { return nil }
        return PictureProtocol(environment: ProcessInfo.processInfo.environment) {
            let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard terminal >= 0 else { return [] }
            defer { close(terminal) }
            return deviceAttributes(of: terminal)
        }
    }

    /// Asks a terminal for its primary device attributes, `ESC [ c`.  Blocks until it has answered, or for half a second.
    ///
    /// - Parameter terminal: its descriptor, to read and write.
    /// - Returns: the attributes without the level, which is the first number; empty if there is no answer.
    package static func deviceAttributes(of terminal: Int32) -> [Int] {
        // A process in the background would be stopped.
        let foreground = tcgetpgrp(terminal)
        var settings = termios()
        guard foreground < 0 || foreground == getpgrp(), tcgetattr(terminal, &settings) == 0 else { return [] }
        var quiet = settings
        quiet.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(terminal, TCSADRAIN, &quiet)
        defer { tcsetattr(terminal, TCSADRAIN, &settings) }
        let question = Array("\u{1B}[c".utf8)
        guard Glibc.write(terminal, question, question.count) == question.count else { return [] }

        let end = ContinuousClock.now + .milliseconds(500)
        var answer: [UInt8] = []
        while answer.count < 256, ContinuousClock.now < end {
            let rest = (end - ContinuousClock.now) / .milliseconds(1)
            var ready = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, Int32(max(1, rest))) > 0 else { break }
            var byte: UInt8 = 0
            guard read(terminal, &byte, 1) == 1 else { break }
            answer.append(byte)
            if let attributes = attributes(in: answer) { return attributes }
        }
        return []
    }

    /// The numbers of `ESC [ ? level ; attribute ; … c` at the end of what was read; what somebody typed may stand before it.
    private static func attributes(in answer: [UInt8]) -> [Int]? {
        guard let match = String(decoding: answer, as: UTF8.self).firstMatch(of: #/\x{1B}\[\?([0-9;]*)c$/#) else {
            return nil
        }
        return match.1.split(separator: ";").dropFirst().compactMap { Int($0) }
    }
}
