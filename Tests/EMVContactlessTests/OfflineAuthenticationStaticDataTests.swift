import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Book 3, 10.3, seen through the hash of a minted card: the signed records are what `Minting/mint.py` signed.
@Suite("Static data to be authenticated")
struct OfflineAuthenticationStaticDataTests {
    private func card(_ name: String = "ordinary") throws -> Card {
        Card(try #require(Minted.all.cards.first { $0.name == name }))
    }

    private static let template = AuthenticationFailure(.staticData, .template)
    private static let tagList = AuthenticationFailure(.staticData, .tagList)
    private static let hash = AuthenticationFailure(.iccCertificate, .hash)

    @Test("Records are what was signed, in this order, of these files")
    func order() throws {
        let card = try card()
        #expect(throws: Never.self) { try card.iccKey().get() }
        var changed = card
        changed.records.swapAt(0, 1)
        expectEqual(changed.iccKey(), .failure(Self.hash))
        changed = card
        changed.records.removeLast()
        expectEqual(changed.iccKey(), .failure(Self.hash))
        // Tag and length count from file 11 on.
        for (index, sfi) in [(0, 10), (0, 1), (1, 1), (2, 30)] as [(Int, UInt8)] {
            changed = card
            changed.records[index].sfi = sfi
            #expect(throws: Never.self) { try changed.iccKey().get() }
        }
        for (index, sfi) in [(0, 11), (1, 30), (2, 10)] as [(Int, UInt8)] {
            changed = card
            changed.records[index].sfi = sfi
            expectEqual(changed.iccKey(), .failure(Self.hash))
        }
    }

    @Test(
        "A record that is no template 70 makes authentication fail, whatever the file",
        arguments: [
            "", "70", "71005A00", "6F025A00", "00700100", "7003AABB", "7081", "708103AABB", "7080", "708500000000015A",
            "70847FFFFFFF5A", "7084FFFFFFFF5A", "70015A5A", "7001AA00BB",
        ])
    func noTemplate(_ record: String) throws {
        for sfi in [1, 10, 11, 30] as [UInt8] {
            var card = try card()
            card.records.append((sfi, bytes(record)))
            expectEqual(card.iccKey(), .failure(Self.template))
            expectEqual(card.sda(), .failure(Self.template))
            // Once is enough.
            card.records.append((sfi, bytes("7000")))
            expectEqual(card.iccKey(), .failure(Self.template))
            expectEqual(card.issuerKey().failure, nil)
            expectEqual(card.pinEnciphermentKey().failure, nil)
        }
    }

    @Test("An empty template is one, and adds nothing of file 1 and its bytes of file 11")
    func emptyTemplate() throws {
        var card = try card()
        card.records.append((1, bytes("7000")))
        card.records.append((2, bytes("70820000")))
        #expect(throws: Never.self) { try card.iccKey().get() }
        card.records.append((11, bytes("7000")))
        expectEqual(card.iccKey(), .failure(Self.hash))
    }

    @Test("Filling behind the template counts as what it is")
    func filling() throws {
        var card = try card()
        // The first record ends with three zeros inside the template: the same bytes, one of them outside.
        let record = card.records[0].bytes
        expectEqual(record.suffix(3), [0, 0, 0])
        card.records[0].bytes = [0x70, record[1] - 1] + record[2...]
        #expect(throws: Never.self) { try card.iccKey().get() }
        card.records[0].bytes = record + [0x00]
        expectEqual(card.iccKey(), .failure(Self.hash))
    }

    @Test("The AIP is signed if 9F4A is its tag, and only then")
    func profile() throws {
        var card = try card()
        for list in ["", "8282", "9F26", "82009F26", "83", "0082"] {
            card.objects[0x9F4A] = list
            expectEqual(card.iccKey(), .failure(Self.tagList))
            expectEqual(card.sda(), .failure(Self.tagList))
        }
        card.objects[0x9F4A] = nil
        expectEqual(card.iccKey(), .failure(Self.hash))
        card.objects[0x9F4A] = "82"
        card.objects[0x82] = nil
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.staticData, .missing(0x82))))

        // A card that was signed without.
        card = try self.card("filled")
        expectEqual(card.objects[0x9F4A], nil)
        card.objects[0x82] = nil
        #expect(throws: Never.self) { try card.iccKey().get() }
        card.objects[0x82] = "3D01"
        card.objects[0x9F4A] = "82"
        expectEqual(card.iccKey(), .failure(Self.hash))
    }

    @Test("No way of printing shows what the records hold")
    func masked() throws {
        let records = try card().staticData
        var dumped = ""
        dump(records, to: &dumped)
        for text in ["\(records)", String(reflecting: records), dumped, "\([records])"] {
            let digits = text.filter { $0.isNumber }
            #expect(text.contains("bytes"))
            #expect(digits.count <= 6, "\(text)")
        }
    }
}
