import EMVContactless
import SmartCard
import SmartCardTrace

/// One selection of an application in a trace, and the commands that followed.
struct RecordedApplication {
    /// The data that a command returned, and the number of the message with the answer.
    struct Exchange {
        let command: CommandAPDU
        let answer: Int
        let status: StatusWord
    }

    /// The DF name that was selected.
    let name: [UInt8]
    var select: Exchange
    var options: Exchange?
    var records: [Exchange] = []
    var authentications: [Exchange] = []
    var cryptograms: [Exchange] = []
    var data: [Exchange] = []

    /// All exchanges but those of GET DATA.
    var answers: [Exchange] { [select] + [options].compactMap(\.self) + records + authentications + cryptograms }

    static let directoryName = Array("2PAY.SYS.DDF01".utf8)

    /// All of `messages`, the directory among them, in their order.
    static func all(in messages: [TraceMessage]) -> [RecordedApplication] {
        var all: [RecordedApplication] = []
        for (index, message) in messages.enumerated() {
            guard case .response(let command?, let status?) = message.kind else { continue }
            let exchange = Exchange(command: command, answer: index, status: status)
            if command.cla == 0x00, command.ins == 0xA4, command.p1 == 0x04 {
                all.append(RecordedApplication(name: command.data, select: exchange))
                continue
            }
            guard !all.isEmpty else { continue }
            switch (command.cla, command.ins) {
            case (0x80, 0xA8): all[all.count - 1].options = all[all.count - 1].options ?? exchange
            case (0x00, 0xB2): all[all.count - 1].records.append(exchange)
            case (0x00, 0x88): all[all.count - 1].authentications.append(exchange)
            case (0x80, 0xAE): all[all.count - 1].cryptograms.append(exchange)
            case (0x80, 0xCA): all[all.count - 1].data.append(exchange)
            default: break
            }
        }
        return all
    }

    /// The data objects of the card by tag, the first of each; format 1 of GET PROCESSING OPTIONS among them.
    func objects(_ messages: [TraceMessage]) -> [TLVTag: [UInt8]] {
        var objects: [TLVTag: [UInt8]] = [:]
        for exchange in answers {
            guard let list = try? TLVList(messages[exchange.answer].bytes) else { continue }
            for object in list.flattened where objects[object.tag] == nil && !object.tag.isConstructed {
                objects[object.tag] = Array(object.value)
            }
        }
        if let options, let list = try? TLVList(messages[options.answer].bytes), let values = list[0x80]?.value,
            values.count >= 2
        {
            objects[0x82] = Array(values.prefix(2))
            objects[0x94] = Array(values.dropFirst(2))
        }
        return objects
    }

    /// Returns the terminal's data for the card's PDOL and CDOL1, by tag, and the values for the PDOL as they were
    /// sent.
    func terminalData(_ objects: [TLVTag: [UInt8]]) -> (byTag: [TLVTag: [UInt8]], options: [UInt8]) {
        var byTag: [TLVTag: [UInt8]] = [:]
        func take(_ list: TLVTag, from data: [UInt8]) {
            guard let list = objects[list].flatMap({ try? DataObjectList($0) }), list.length == data.count else {
                return
            }
            var rest = data[...]
            for entry in list.entries {
                byTag[entry.tag] = Array(rest.prefix(entry.length))
                rest = rest.dropFirst(entry.length)
            }
        }
        let template = options.flatMap { (try? TLVList($0.command.data, padding: []))?[0x83] }
        let values = template.map { Array($0.value) } ?? []
        take(0x9F38, from: values)
        if let first = cryptograms.first { take(0x8C, from: first.command.data) }
        return (byTag, values)
    }

    /// A record that the Application File Locator names.
    struct Located {
        let sfi: UInt8
        let number: UInt8
        let isSigned: Bool
        /// The message with the answer; nil if it was not read.
        let answer: Int?
    }

    /// Returns the records of the AFL in its order (EMV Book 3, 10.2); nil for an invalid AFL.
    func located(_ objects: [TLVTag: [UInt8]]) -> [Located]? {
        guard let locator = objects[0x94], locator.count % 4 == 0 else { return nil }
        var located: [Located] = []
        for start in stride(from: 0, to: locator.count, by: 4) {
            let (sfi, first, last, signed) = (
                locator[start] >> 3, locator[start + 1], locator[start + 2], locator[start + 3]
            )
            guard first > 0, first <= last, located.count < 1000 else { return nil }
            for number in first...last {
                let answer = records.first {
                    $0.command.p1 == number && $0.command.p2 >> 3 == sfi && $0.status.isAnswered
                }
                located.append(
                    Located(sfi: sfi, number: number, isSigned: number - first < signed, answer: answer?.answer))
            }
        }
        return located
    }

    /// Returns the records, or parts of records, that the issuer has signed.
    func signedRecords(_ objects: [TLVTag: [UInt8]], _ messages: [TraceMessage]) -> StaticDataToBeAuthenticated {
        var records = StaticDataToBeAuthenticated()
        for record in located(objects) ?? [] where record.isSigned {
            if let answer = record.answer { records.append(record: messages[answer].bytes, sfi: record.sfi) }
        }
        return records
    }
}

extension StatusWord {
    /// True if the response contains data: success, warnings, more data.
    var isAnswered: Bool {
        switch self {
        case .success, .warning, .warningChanged, .moreData: true
        default: false
        }
    }
}
