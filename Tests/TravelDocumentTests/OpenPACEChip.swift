import CLibEAC
import SmartCard

@testable import TravelDocument

/// A chip whose PACE and secure messaging are OpenPACE's (Debian's libeac), which somebody else wrote.
final class OpenPACEChip: CardChannel, @unchecked Sendable {
    // Unchecked: one command is under way at a time.
    private let context: UnsafeMutablePointer<EAC_CTX>
    private let password: UnsafeMutablePointer<PACE_SEC>
    private let cardAccess: [UInt8]
    private let files: [UInt16: [UInt8]]
    private var step = 0
    private var publicKey: UnsafeMutablePointer<BUF_MEM>?
    private var readerKey: UnsafeMutablePointer<BUF_MEM>?
    private var isSecure = false
    private var file: [UInt8]?

    /// - Returns: nil if libeac does not have the variant.
    init?(_ info: PACEInfo, can: String, files: [UInt16: [UInt8]]) {
        Self.initialize
        guard let context = EAC_CTX_new(), let password = PACE_SEC_new(can, can.utf8.count, PACE_CAN) else {
            return nil
        }
        (self.context, self.password, self.cardAccess, self.files) = (context, password, Self.cardAccess(info), files)
        context.pointee.tr_version = EAC_TR_VERSION_2_02
        guard EAC_CTX_init_pace(context, OBJ_txt2nid(Self.name(info)), Int32(info.domainParameters ?? -1)) == 1 else {
            return nil
        }
    }

    deinit {
        for buffer in [publicKey, readerKey] { BUF_MEM_clear_free(buffer) }
        PACE_SEC_clear_free(password)
        EAC_CTX_clear_free(context)
    }

    private static let initialize: Void = EAC_init()

    /// The name of the protocol in libeac.
    private static func name(_ info: PACEInfo) -> String {
        let cipher =
            switch info.cipher {
            case .tripleDES: "3DES-CBC-CBC"
            default: "AES-CBC-CMAC-\(info.cipher.keyLength * 8)"
            }
        return "id-PACE-\(info.variant.isElliptic ? "ECDH" : "DH")-GM-\(cipher)"
    }

    private static func cardAccess(_ info: PACEInfo) -> [UInt8] {
        let parts = [
            TLVTag(0x06).encode(info.identifier), [0x02, 0x01, 0x02],
            [0x02, 0x01, UInt8(info.domainParameters ?? 0)],
        ]
        return TLVTag(0x31).encode(TLVTag(0x30).encode(parts.flatMap(\.self)))
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        command.cla & 0x0C == 0x0C ? respondProtected(to: command) : respondPlain(to: command)
    }

    // MARK: PACE

    private func respondPlain(to command: CommandAPDU) -> ResponseAPDU {
        switch (command.ins, command.p1) {
        case (0xB0, 0x9C):
            return ResponseAPDU(data: Array(cardAccess.prefix(command.ne ?? 0)), status: 0x6282)
        case (0x22, 0xC1):
            step = 1
            return ResponseAPDU(status: .success)
        case (0x86, 0x00): return authenticate(command)
        case (0xA4, _) where isSecure: return ResponseAPDU(status: .success)
        case (0xB0, _): return readBinary(command)
        case (0xB1, _): return readOdd(command)
        default: return ResponseAPDU(status: 0x6D00)
        }
    }

    private func authenticate(_ command: CommandAPDU) -> ResponseAPDU {
        guard let template = (try? TLVList(command.data, padding: []))?.first, template.tag == 0x7C else {
            return ResponseAPDU(status: 0x6A80)
        }
        let value = buffer(template.children.first?.value ?? [])
        defer {
            BUF_MEM_clear_free(value)
            step += 1
        }
        switch step {
        case 1: return answer(0x80, PACE_STEP1_enc_nonce(context, password))
        case 2:
            let data = PACE_STEP3A_generate_mapping_data(context)
            guard PACE_STEP3A_map_generator(context, value) == 1 else {
                BUF_MEM_clear_free(data)
                return ResponseAPDU(status: 0x6A80)
            }
            return answer(0x82, data)
        case 3:
            for buffer in [publicKey, readerKey] { BUF_MEM_clear_free(buffer) }
            publicKey = PACE_STEP3B_generate_ephemeral_key(context)
            readerKey = buffer(bytes(value))
            guard PACE_STEP3B_compute_shared_secret(context, readerKey) == 1, PACE_STEP3C_derive_keys(context) == 1
            else { return ResponseAPDU(status: 0x6A80) }
            return answer(0x84, publicKey, isKept: true)
        case 4:
            let token = PACE_STEP3D_compute_authentication_token(context, readerKey)
            guard PACE_STEP3D_verify_authentication_token(context, value) == 1 else {
                BUF_MEM_clear_free(token)
                return ResponseAPDU(status: 0x6300)
            }
            guard EAC_CTX_set_encryption_ctx(context, EAC_ID_PACE) == 1, EAC_reset_ssc(context) == 1 else {
                return ResponseAPDU(status: 0x6F00)
            }
            isSecure = true
            return answer(0x86, token)
        default: return ResponseAPDU(status: 0x6985)
        }
    }

    private func answer(_ tag: TLVTag, _ buffer: UnsafeMutablePointer<BUF_MEM>?, isKept: Bool = false) -> ResponseAPDU {
        guard let buffer else { return ResponseAPDU(status: 0x6F00) }
        defer { if !isKept { BUF_MEM_clear_free(buffer) } }
        return ResponseAPDU(data: TLVTag(0x7C).encode(tag.encode(bytes(buffer))), status: .success)
    }

    // MARK: Files

    private func readBinary(_ command: CommandAPDU) -> ResponseAPDU {
        var offset = Int(command.p1) << 8 | Int(command.p2)
        if command.p1 & 0x80 != 0 {
            file = files[0x0100 | UInt16(command.p1 & 0x1F)]
            offset = Int(command.p2)
        }
        guard let file else { return ResponseAPDU(status: 0x6A82) }
        let data = Array(file.dropFirst(offset).prefix(command.ne ?? 0))
        return ResponseAPDU(data: data, status: data.count < command.ne ?? 0 ? 0x6282 : .success)
    }

    private func readOdd(_ command: CommandAPDU) -> ResponseAPDU {
        guard let file, let object = (try? TLVList(command.data, padding: []))?.first, let ne = command.ne else {
            return ResponseAPDU(status: 0x6A80)
        }
        let offset = object.value.reduce(0) { $0 << 8 | Int($1) }
        let data = file.dropFirst(offset).prefix(ne - (ne > 129 ? 3 : 2))
        return ResponseAPDU(data: TLVTag(0x53).encode(data), status: .success)
    }

    // MARK: Secure messaging

    private func respondProtected(to command: CommandAPDU) -> ResponseAPDU {
        EAC_increment_ssc(context)
        guard isSecure, let list = try? TLVList(command.data, padding: []), let mac = list[0x8E] else {
            return ResponseAPDU(status: 0x6987)
        }
        let objects = Array(command.data[..<mac.offset])
        let header = padded([command.cla, command.ins, command.p1, command.p2])
        let message = buffer(header + (objects.isEmpty ? [] : padded(objects)))
        let given = buffer(mac.value)
        defer { for buffer in [message, given] { BUF_MEM_clear_free(buffer) } }
        guard EAC_verify_authentication(context, message, given) == 1 else {
            isSecure = false
            return ResponseAPDU(status: 0x6988)
        }
        var data: [UInt8] = []
        if let cryptogram = list[0x87]?.value.dropFirst() ?? list[0x85]?.value {
            let encrypted = buffer(cryptogram)
            defer { BUF_MEM_clear_free(encrypted) }
            guard let clear = EAC_decrypt(context, encrypted) else { return ResponseAPDU(status: 0x6988) }
            defer { BUF_MEM_clear_free(clear) }
            guard let unpadded = EAC_remove_iso_pad(clear) else { return ResponseAPDU(status: 0x6988) }
            defer { BUF_MEM_clear_free(unpadded) }
            data = bytes(unpadded)
        }
        let le = list[0x97].map { $0.value.reduce(0) { $0 << 8 | Int($1) } }
        guard
            let plain = try? CommandAPDU(
                cla: command.cla & 0xF0, ins: command.ins, p1: command.p1, p2: command.p2, data: data,
                ne: le == 0 ? 256 : le)
        else { return ResponseAPDU(status: 0x6700) }
        return protect(respondPlain(to: plain), isOdd: !command.ins.isMultiple(of: 2))
    }

    private func protect(_ response: ResponseAPDU, isOdd: Bool) -> ResponseAPDU {
        EAC_increment_ssc(context)
        var objects: [UInt8] = []
        if !response.data.isEmpty {
            let clear = buffer(padded(response.data))
            defer { BUF_MEM_clear_free(clear) }
            guard let encrypted = EAC_encrypt(context, clear) else { return ResponseAPDU(status: 0x6F00) }
            defer { BUF_MEM_clear_free(encrypted) }
            objects = isOdd ? TLVTag(0x85).encode(bytes(encrypted)) : TLVTag(0x87).encode([0x01] + bytes(encrypted))
        }
        objects += TLVTag(0x99).encode([response.status.sw1, response.status.sw2])
        let message = buffer(padded(objects))
        defer { BUF_MEM_clear_free(message) }
        guard let mac = EAC_authenticate(context, message) else { return ResponseAPDU(status: 0x6F00) }
        defer { BUF_MEM_clear_free(mac) }
        return ResponseAPDU(data: objects + TLVTag(0x8E).encode(bytes(mac)), status: response.status)
    }

    /// libeac's own padding, to the block of the session's cipher.
    private func padded(_ bytes: [UInt8]) -> [UInt8] {
        let clear = buffer(bytes)
        defer { BUF_MEM_clear_free(clear) }
        guard let padded = EAC_add_iso_pad(context, clear) else { return [] }
        defer { BUF_MEM_clear_free(padded) }
        return self.bytes(padded)
    }

    // MARK: Buffers

    private func buffer(_ bytes: some Collection<UInt8>) -> UnsafeMutablePointer<BUF_MEM> {
        let bytes = Array(bytes)
        guard let buffer = BUF_MEM_new(), BUF_MEM_grow(buffer, bytes.count) == bytes.count else {
            preconditionFailure("no memory")
        }
        for (index, byte) in bytes.enumerated() { buffer.pointee.data[index] = CChar(bitPattern: byte) }
        return buffer
    }

    private func bytes(_ buffer: UnsafeMutablePointer<BUF_MEM>) -> [UInt8] {
        Array(UnsafeRawBufferPointer(start: buffer.pointee.data, count: buffer.pointee.length))
    }
}
